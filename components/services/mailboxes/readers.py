"""
MailboxReader: all mailboxes, by page, for the control room.

The names lie in an index for each bucket. A page asks all buckets for their sizes, those that it shows for their
names, and these for themselves: three round trips, whatever the number of mailboxes. Nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.kit.at_once import at_once
from components.kit.buckets import BUCKETS
from components.kit.client import AnyRedis, get_client
from components.kit.scripts import reading
from components.kit.stored import number_of, text_of
from components.services.mailboxes import keys
from components.services.mailboxes.core import Keys, check_limit, instant_or_none, peek
from components.services.mailboxes.records import Mail, MailboxInfo

_FIGURES = ("pulled_at", "pushed", "acknowledged", "dropped", "limit")


class MailboxReader:
    """What was used within a year. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """How many there are."""
        return sum(at_once(_sizes(get_client())))

    def page(self, *, offset: int = 0, limit: int = 50) -> list[MailboxInfo]:
        """Some of them, from the *offset*-th on, by name. Use moves them to other pages, once a day at most."""
        client = get_client()
        wanted = []
        for tag, size in zip(BUCKETS, at_once(_sizes(client)), strict=True):
            if offset < size and limit > 0:
                wanted.append((tag, offset, offset + min(limit, size - offset) - 1))
                limit -= min(limit, size - offset)
            offset = max(0, offset - size)
        listed = at_once(_names(client, wanted))
        return at_once(look(client, sorted(text_of(name) for names in listed for name in names)))

    def find(self, name: str) -> MailboxInfo | None:
        """The one of this name; None if it was never used, or not for a year."""
        if not name:
            return None
        [info] = at_once(look(get_client(), [name]))
        return info if info.pushed or info.pulled_at else None

    def messages(self, name: str, *, first: int = 0, limit: int = 50) -> list[Mail]:
        """A page of what is in it, from the id *first* on, whoever looks. It is not handed out by this."""
        return at_once(peek(get_client(), name, first, check_limit(limit)))


async def look(client: AnyRedis, names: Sequence[str]) -> list[MailboxInfo]:
    """How these stand now, in one round trip to each node."""

    def send() -> Any:
        pipe = client.pipeline(transaction=False)
        for name in names:
            _add(pipe, Keys(name))
        return pipe.execute()

    found = iter(await reading(send) if names else [])
    return [_read(name, *five) for name, five in zip(names, zip(*[found] * 5, strict=True), strict=True)]


def _add(pipe: Any, its: Keys) -> None:
    pipe.xlen(its.messages)
    pipe.zcard(its.handed)
    pipe.memory_usage(its.messages)
    pipe.xrange(its.messages, count=1)
    pipe.hmget(its.mailbox, _FIGURES)


def _read(
    name: str, depth: int, handed_out: int, size: int | None, oldest: list[Any], figures: list[bytes | None]
) -> MailboxInfo:
    pulled_at, pushed, acknowledged, dropped, limit = figures
    return MailboxInfo(
        name=name,
        depth=depth,
        handed_out=handed_out,
        bytes=size or 0,
        oldest_at=instant_or_none(oldest[0][1].get(b"at")) if oldest else None,
        pulled_at=instant_or_none(pulled_at),
        pushed=number_of(pushed),
        acknowledged=number_of(acknowledged),
        dropped=number_of(dropped),
        limit=number_of(limit) or None,
    )


async def _sizes(client: AnyRedis) -> list[int]:
    return await _ask(client, [("zcard", keys.mailbox_names(tag)) for tag in BUCKETS])


async def _names(client: AnyRedis, wanted: Sequence[tuple[str, int, int]]) -> list[list[bytes]]:
    asked = [("zrange", keys.mailbox_names(tag), first, last) for tag, first, last in wanted]
    return await _ask(client, asked)


async def _ask(client: AnyRedis, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    def send() -> Any:
        pipe = client.pipeline(transaction=False)
        for command, *args in commands:
            getattr(pipe, command)(*args)
        return pipe.execute()

    return list(await reading(send) if commands else [])
