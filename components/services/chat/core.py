"""
What the methods of Chat and Inbox have in common: keys, scripts, and what a refusal of a script is called.

A chat and all that belongs to it lie in the slot of its bucket: its state and limits in a hash, messages and events
in a stream under one sequence of their own, the members' records in a hash, their reading positions in a sorted set.
"""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from components.exceptions import (
    Blocked,
    ChatClosed,
    ChatNotFound,
    ComponentsError,
    InvalidMessage,
    MessageNotFound,
    Muted,
    NotAllowed,
    NotAMember,
    RedisUnavailable,
    TooFast,
    TooManyBlocked,
    TooManyMembers,
)
from components.kit.buckets import bucket
from components.kit.client import AnyRedis
from components.kit.news import channel
from components.kit.scripts import Script, reading
from components.kit.stored import number_of, text_of
from components.kit.values import check_name
from components.services.chat.formats import instant
from components.services.chat.ids import new_call
from components.services.chat.keys import ChatKeys, InboxKeys

MAX_BYTES = 65_536  # of bodies that one answer has of a chat, unless a single message is longer
READS_TOLD = 50  # members: in larger chats nobody is told how far each has read
TRIMMED = 500  # entries in one run of the script
YOUNG_AFTER_LEAVING = 60_000  # milliseconds: so long after a hint its person may be on his way into the chat
YOUNG = 86_400_000  # milliseconds
MANY_PAST = 50  # chats that somebody has left: above this, it is found out which of them must be remembered
LOOKED_AT_PAST = 20  # of them at once
CLOCKS_APART = 3_600_000  # milliseconds: by so much the clocks of two nodes of a cluster may differ

create = Script("chat/create")
send = Script("chat/send")
history = Script("chat/history")
look = Script("chat/look")
read = Script("chat/read")
enter = Script("chat/enter")
remove = Script("chat/remove")
members = Script("chat/members")
trim = Script("chat/trim")
role = Script("chat/role")
mute = Script("chat/mute")
unblock = Script("chat/unblock")
change = Script("chat/change")
delete = Script("chat/delete")
delete_message = Script("chat/delete_message")
erase = Script("chat/erase")
hint = Script("chat/hint")
forget = Script("chat/forget")
charge = Script("chat/charge")
drop = Script("chat/drop")
kept = Script("chat/kept")


class Keys:
    """The keys of one chat, for each script."""

    def __init__(self, its: ChatKeys) -> None:
        chat, messages, who, reads, blocked = its.chat, its.messages, its.members, its.reads, its.blocked
        mentions, own, sent = f"{its.mentions}/", f"{its.own}/", f"{its.sent}/"
        rate, calls = f"{its.rate}/", f"{its.calls}/"
        deleted, names, muted = its.deleted, its.names, its.muted
        self.create = (chat, messages, who, reads, sent, names)
        self.send = (chat, messages, who, reads, sent, names, mentions, own, rate, deleted)
        self.history = (chat, messages, who)
        self.read = (chat, messages, who, reads, mentions, own, deleted)
        self.enter = (chat, messages, who, reads, blocked, calls, muted)
        self.remove = (chat, messages, who, reads, mentions, own, blocked, calls, sent, deleted, names, muted)
        self.members = (chat, who, reads, mentions, own, deleted, messages)
        self.trim = (chat, messages, reads, sent, deleted, calls)
        self.role = (chat, messages, who, calls)
        self.mute = (chat, messages, who, calls, muted)
        self.unblock = (chat, messages, who, blocked, calls)
        self.change = (chat, messages, who, calls, sent, reads, mentions, own)
        self.delete_message = (chat, messages, who, mentions, own, deleted, calls)
        self.erase = (chat, messages, mentions, own, deleted, calls)
        self.blocked, self.muted, self.settings = blocked, muted, chat
        self.delete = (chat, messages, who, reads, mentions, own, blocked, sent, deleted, names, muted)


def keys_of(chat_id: str) -> Keys:
    """Those of this chat under the prefix of now, which is a setting."""
    return _keys_of(chat_id, ChatKeys(chat_id).chat)


@lru_cache(maxsize=1_024)
def _keys_of(chat_id: str, first: str) -> Keys:
    return Keys(ChatKeys(chat_id))


def keys_of_look(tag: str) -> list[str]:
    """For look.lua: the prefixes to the ids of a bucket's chats."""
    its = ChatKeys.of_bucket(tag)
    return [its.chat, its.messages, its.members, its.reads, its.mentions, its.own, its.deleted]


def keys_of_inbox(person: str) -> list[str]:
    """The hints of a person, and the chats that he has left."""
    its = InboxKeys(person)
    return [its.hints, its.past]


def keys_of_limits(person: str) -> list[str]:
    """Return the keys of charge.lua: the chats that a person created, and the prefix of what they paid for."""
    its = InboxKeys(person)
    return [its.created, f"{its.rate}/"]


def check_actor(by: object) -> str:
    """Who does something; None is the system, which scripts know as "". Raises InvalidName."""
    return "" if by is None else check_person(by)


def check_person(person: object) -> str:
    """*person*, if one can be called so. Raises InvalidName."""
    return check_name("person", person)


async def blocked_of(client: AnyRedis, chat: Keys) -> dict[str, datetime]:
    found = await reading(lambda: client.hgetall(chat.blocked))
    return {text_of(person): instant(number_of(since)) for person, since in found.items()}


async def muted_of(client: AnyRedis, chat: Keys) -> dict[str, datetime]:
    """Return who left while they were muted, and until when they are."""
    found = await reading(lambda: client.zrange(chat.muted, 0, -1, withscores=True))
    return {
        text_of(person): instant(until) if until < math.inf else datetime.max.replace(tzinfo=UTC)
        for person, until in found
    }


async def trim_all(client: AnyRedis, chat_id: str, *, before: int = 0, runs: int | None = None) -> int:
    """Let go what a chat's limits say, or all up to *before*; how many entries that were."""
    gone, more = 0, 1
    while more and (runs is None or runs > 0):
        args = [before, new_call(), TRIMMED, channel("chat", chat_id)]
        went, more = await trim.acall(client, keys=keys_of(chat_id).trim, args=args)
        gone, runs = gone + int(went), runs and runs - 1
    return gone


async def forget_hints(client: AnyRedis, person: str, chat_ids: list[str], *, young: int) -> None:
    """Note that *person* is not in these chats any more. Hints that are *young*, in milliseconds, stay."""
    past = await forget.acall(client, keys=keys_of_inbox(person), args=[young, *chat_ids])
    if past > MANY_PAST:
        # It is done again with the next one that they leave, so an outage of one node changes nothing.
        with suppress(RedisUnavailable):
            await prune_past(client, person)


async def prune_past(client: AnyRedis, person: str) -> None:
    """
    Look at some of the chats that *person* has left, and forget those in which nothing is left of their time.

    They are chosen by chance, and are more than come in. So what remains are those of which erasure must know.
    """
    key = InboxKeys(person).past
    found = await reading(lambda: client.zrandmember(key, LOOKED_AT_PAST))
    if not found:
        return
    scores = await reading(lambda: client.zmscore(key, found))
    asked: dict[str, list[tuple[str, int]]] = {}
    for chat_id, left_at in zip(map(text_of, found), scores, strict=True):
        if left_at is not None:
            asked.setdefault(bucket(chat_id), []).append((chat_id, int(left_at)))
    calls = [
        (
            keys_of_look(tag)[:2],
            [word for chat_id, left_at in some for word in (chat_id, left_at + CLOCKS_APART)],
        )
        for tag, some in asked.items()
    ]
    gone: list[str | int] = []
    for some, answers in zip(asked.values(), await kept.amany(client, calls), strict=True):
        for (chat_id, left_at), is_kept in zip(some, answers, strict=True):
            if not is_kept:
                gone += [chat_id, "", left_at, 0]
    if gone:
        await drop.acall(client, keys=keys_of_inbox(person), args=gone)


def refusal(chat_id: str, said: bytes, *why: Any) -> ComponentsError:
    """The error for what a script has said in place of doing something."""
    match said:
        case b"closed":
            return ChatClosed(f"The chat {chat_id!r} is closed.")
        case b"denied":
            return NotAllowed(f"The role in the chat {chat_id!r} does not include this.")
        case b"last":
            return NotAllowed(f"He is the last owner of the chat {chat_id!r}: name another before.")
        case b"absent":
            return NotAMember(f"He is not in the chat {chat_id!r}.")
        case b"nowhere":
            return MessageNotFound(f"There is no such message in the chat {chat_id!r}.")
        case b"blocked":
            return Blocked(f"{why[0].decode()!r} is blocked in the chat {chat_id!r}.")
        case b"crowded":
            return TooManyBlocked(
                f"The chat {chat_id!r} blocks 10,000 persons, which is the limit: unblock others."
            )
        case b"full":
            return TooManyMembers(f"The chat {chat_id!r} takes {why[0]:,} members at most.")
        case b"muted":
            until = "until that is taken back" if why[0] < 0 else f"until {instant(why[0]).isoformat()}"
            return Muted(f"The person may not speak in the chat {chat_id!r} {until}.")
        case b"long":
            return InvalidMessage(
                f"The message is too long: the chat {chat_id!r} takes texts of up to {why[0]:,} characters and data "
                f"of up to {why[1]:,} bytes."
            )
        case b"fast":
            seconds = why[0] / 1000
            return TooFast(
                f"Too much was sent to the chat {chat_id!r}: there is room in {seconds:g} s.", seconds
            )
    return unknown(chat_id)


def unknown(chat_id: object) -> ChatNotFound:
    return ChatNotFound(f"There is no chat {repr(chat_id)[:80]}, or the person is not in it.")
