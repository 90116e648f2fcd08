"""
A process that reads for some persons: it notes what came, then says that they have read it, and notes that too.

`python -m tests.chaos.chats.readers FOLDER PLACE` is one; how it reads, plan.STYLES says. It ends when the file
"over" is there and nothing is left. What was not acknowledged when it was killed comes again to the one after it,
who tells by the notes how far the persons are.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.chaos.chats.settings")

from components.exceptions import RedisUnavailable
from components.services.chat import Changes, ChatMessage, ChatNews, Inbox, Position
from tests.chaos.chats import notes, plan

LOSSY = 1  # the place of the one that does not get all replies
_PAUSE = 0.02  # seconds, while Redis is away
_BREATH = 0.4  # seconds between two looks, so that there is something to read
_LIMIT = 100  # messages of a chat
_WAIT = 2.0  # seconds


class Reader:
    def __init__(self, folder: Path, place: int) -> None:
        self._role = f"reader-{place}"
        self._over = folder / "over"
        self._persons = plan.PERSONS[place :: plan.READERS]
        #: How far each is in each chat, as a client that keeps what it has got.
        self._positions: defaultdict[str, dict[str, Position]] = defaultdict(dict)
        #: Chats that each was told to be in no more: he asks for them only when he is told of them again.
        self._gone: defaultdict[str, set[str]] = defaultdict(set)
        for kind, *words in notes.read(folder, self._role):
            if kind == "F" and len(words) > 3:
                self._positions[words[0]][words[1]] = Position(notes.seq(words[-1]))
        self._notes = notes.Notes(folder, self._role)

    def work(self, style: str) -> None:
        if style == "achanges":
            return asyncio.run(self._wait_for_all())
        look = self._fetch if style == "fetch" else self._look_for_changes
        while True:
            is_over = self._over.exists()
            try:
                came = [look(person) for person in self._persons]
            except RedisUnavailable:
                time.sleep(_PAUSE)
                continue
            if is_over and not any(came):
                return None
            time.sleep(_BREATH)

    def _fetch(self, person: str) -> bool:
        news = Inbox(person).fetch(limit=_LIMIT)
        if ends := self._note(person, news):
            self._note_read(person, Inbox(person).acknowledge(ends))
        return bool(ends)

    def _look_for_changes(self, person: str) -> bool:
        since = self._since(person)
        changes = Inbox(person).changes(since, limit=_LIMIT)
        if ends := self._take(person, since, changes):
            Inbox(person).acknowledge(ends)
            self._note_read(person, ends)
        return bool(ends) or self._since(person).keys() != since.keys()

    async def _wait_for_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for person in self._persons:
                tasks.create_task(self._wait(person))

    async def _wait(self, person: str) -> None:
        inbox = Inbox(person)
        while True:
            is_over, since = self._over.exists(), self._since(person)
            try:
                changes = await inbox.achanges(since, limit=_LIMIT, wait=0.0 if is_over else _WAIT)
                if ends := self._take(person, since, changes):
                    await inbox.aacknowledge(ends)
                    self._note_read(person, ends)
            except RedisUnavailable:
                await asyncio.sleep(_PAUSE)
                continue
            if is_over and not ends and self._since(person).keys() == since.keys():
                return
            await asyncio.sleep(_BREATH)

    def _since(self, person: str) -> dict[str, Position]:
        """From the beginning, in chats of which nothing has come yet."""
        known = {chat: Position(0) for chat in plan.steady_chats(person)} | self._positions[person]
        return {chat: position for chat, position in known.items() if chat not in self._gone[person]}

    def _take(self, person: str, since: dict[str, Position], changes: Changes) -> dict[str, int]:
        """
        Note what came, and how far he is. Of a chat that he did not ask for the newest messages come: he asks next
        time, from where he was in it.
        """
        new = {chat.chat_id for chat in changes.chats} - since.keys()
        for chat in new:
            self._positions[person].setdefault(chat, Position(0))
        positions = self._positions[person]
        positions.update((chat, at) for chat, at in changes.positions.items() if chat not in new)
        self._gone[person] = self._gone[person] - new | set(changes.gone)
        return self._note(person, [chat for chat in changes.chats if chat.chat_id not in new])

    def _note(self, person: str, news: Sequence[ChatNews]) -> dict[str, int]:
        """Note what came; the last seq of each chat of which something came."""
        lines = []
        for chat in news:
            tokens = " ".join(map(notes.token, chat.messages))
            if tokens or chat.missed:
                lines.append(f"F {person} {chat.chat_id} {chat.missed} {tokens}")
            lines += [f"X {person} got {m!r}" for m in chat.messages if not is_whole(m, chat)]
        self._notes.write(*lines)
        return {chat.chat_id: chat.messages[-1].seq for chat in news if chat.messages}

    def _note_read(self, person: str, read: dict[str, int]) -> None:
        """
        Up to where nothing may come again. Of a position of his own only he knows; the reading position may be ahead
        of it, for who has read all has read what he says.
        """
        self._notes.write(f"K {person} " + " ".join(f"{chat} {seq}" for chat, seq in read.items()))


def is_whole(message: ChatMessage, chat: ChatNews) -> bool:
    """Whether all of it is as it was sent."""
    if message.event:
        return message.chat_id == chat.chat_id and not (message.text or message.sender)
    number = int(message.client_id.rpartition(".")[2])
    return (
        message.chat_id == chat.chat_id
        and message.client_id.rpartition(".")[0] == message.sender
        and message.text == plan.text_of(message.client_id)
        and message.data == plan.data_of(number)
        and set(message.mentions) <= set(plan.mentions_of(message.sender, number))
    )


if __name__ == "__main__":
    place = int(sys.argv[2])
    Reader(Path(sys.argv[1]), place).work(plan.STYLES[place])
