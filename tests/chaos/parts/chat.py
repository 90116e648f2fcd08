"""Chat: what was accepted is in the history once, in its sender's order, and each member gets each message."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from components.exceptions import RedisUnavailable
from components.services.chat import Chat, ChatMessage, ChatSettings, Inbox
from tests.chaos.players import Notes, Player, Role, insist, note

CHATS = ("chat-0", "chat-1", "chat-2")
PERSONS = tuple(f"p{number}" for number in range(8))
TALKERS = READERS = 2
TEXT = "Grüße, 你好\r\n<script>alert('no')</script> \\ \u2028🦊"
_PAGE = 100


def prepare(folder: Path) -> None:
    settings = ChatSettings(max_messages=1_000_000, max_bytes=1 << 30, rate_limit=0)
    for chat in CHATS:
        Chat.create("owner", members=PERSONS, id=chat, settings=settings)


def talk(player: Player) -> None:
    number = 0
    while not player.is_over:
        number += 1
        say(player.random.choice(PERSONS[player.number :: TALKERS]), player.random.choice(CHATS), number)
        player.nap(0.05)


def say(person: str, chat: str, number: int) -> None:
    client_id = f"{os.getpid()}.{number}"
    sent = insist(lambda: Chat(chat).send(person, f"{client_id} {TEXT}", client_id=client_id))
    note("said", chat=chat, person=person, seq=sent.seq, client_id=client_id)


def read(player: Player) -> None:
    """Note what comes, then acknowledge it, and note that; until nothing comes any more."""
    is_last = False
    while not is_last:
        is_last = player.is_over and player.is_alone("talker")
        for person in PERSONS[player.number :: READERS]:
            try:
                news = Inbox(person).fetch(limit=_PAGE)
                for each in news:
                    note(
                        "got",
                        person=person,
                        chat=each.chat_id,
                        seqs=[message.seq for message in each.messages],
                    )
                ends = {each.chat_id: each.messages[-1].seq for each in news if each.messages}
                if ends:
                    is_last = False
                    for chat, seq in Inbox(person).acknowledge(ends).items():
                        note("read", person=person, chat=chat, seq=seq)
            except RedisUnavailable:
                is_last = False
                time.sleep(0.02)
        player.nap(0.3)


ROLES = {"talker": Role(TALKERS, talk), "reader": Role(READERS, read)}


def is_settled() -> bool:
    return not any(Inbox(person).fetch() for person in PERSONS)


def history(chat: str) -> list[ChatMessage]:
    """Return all messages and events, the oldest first."""
    found: list[ChatMessage] = []
    has_more = True
    while has_more:
        page = Chat(chat).history("owner", after=found[-1].seq if found else 0, limit=_PAGE)
        found += page.messages
        has_more = page.has_more
    return found


def judge(notes: Notes) -> Iterator[str]:
    if len(notes["said"]) < 100:
        yield f"{len(notes['said'])} messages were accepted only: nothing was tested."
    for chat in CHATS:
        there = history(chat)
        if [message.seq for message in there] != list(range(1, len(there) + 1)):
            yield f"{chat} does not count its messages one by one."
        by_seq = {message.seq: message for message in there}
        for each in (each for each in notes["said"] if each["chat"] == chat):
            message = by_seq.get(each["seq"])
            if message is None or (message.sender, message.client_id) != (each["person"], each["client_id"]):
                yield f"{each} was accepted, and there is {message}."
        said = defaultdict[str, list[int]](list)
        for message in there:
            if not message.event:
                process, number = message.client_id.split(".")
                said[process].append(int(number))
                if message.text != f"{message.client_id} {TEXT}":
                    yield f"{chat}: {message} is not what was said."
        for process, numbers in said.items():
            if any(first >= second for first, second in pairwise(numbers)):
                yield f"{chat} has not the order of the sender {process}, or a message twice: {numbers}"
        for person in PERSONS:
            yield from judge_reader(notes, person, chat, there)


def judge_reader(notes: Notes, person: str, chat: str, there: list[ChatMessage]) -> Iterator[str]:
    """Their own messages may come to them as well; the creation of the chat is older than its members."""
    got = [each for each in notes["got"] if (each["person"], each["chat"]) == (person, chat)]
    seen = {seq for each in got for seq in each["seqs"]}
    if missing := {message.seq for message in there[1:] if message.sender != person} - seen:
        yield f"{person} has not got {sorted(missing)[:10]} of {chat}."
    if strange := seen - {message.seq for message in there}:
        yield f"{person} has got {sorted(strange)[:10]} of {chat}."
    for each in got:
        if each["seqs"] != sorted(set(each["seqs"])):
            yield f"{person} got messages of {chat} out of order: {each}"
    for each in notes["read"]:
        if (each["person"], each["chat"]) == (person, chat):
            again = [other for other in got if other["at"] > each["at"] and min(other["seqs"]) <= each["seq"]]
            if again:
                yield f"{person} had read {each}, and got it again: {again[0]}"


def figures(notes: Notes) -> str:
    return f"{len(notes['said'])} messages, got in {len(notes['got'])} portions"
