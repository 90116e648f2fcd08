"""
CounterReader: several counters at once, the first of a family, and which there are.

A call goes to each bucket that is asked, all to one node together. The first of a family are found by adding up those
that were seen in the time asked for, a few hundred of them in a call, so that no call takes long. Nothing changes.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from components.exceptions import InvalidLimit
from components.kit.at_once import at_once
from components.kit.buckets import BUCKETS, bucket
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.scripts import Call, Script, reading
from components.kit.stored import instant_of, text_of
from components.kit.values import check_name, is_name
from components.services.counters import keys
from components.services.counters.core import Asked, ask, check_fill
from components.services.counters.records import CounterInfo, Fill, Ranked, Series

_read = Script("counters/read")
_top = Script("counters/top")

_MOST = 10_000  # of a family, or of names


class CounterReader:
    """What was counted. Every method raises RedisUnavailable."""

    def read(
        self,
        names: Sequence[str],
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        fill: Fill = 0,
    ) -> dict[str, Series]:
        """Counter(name).get() of several, which all begin and end alike, in one round trip to each node."""
        return at_once(_series(get_client(), names, precision, since, until, fill))

    async def aread(
        self,
        names: Sequence[str],
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        fill: Fill = 0,
    ) -> dict[str, Series]:
        """read(), awaited."""
        return await _series(get_async_client(), names, precision, since, until, fill)

    def top(
        self,
        family: str,
        limit: int = 10,
        *,
        precision: int = 3_600,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Ranked]:
        """
        Those of a family that counted most in the slices that get() would give, the first first.

        What it costs is their number times that of the slices. Raises InvalidLimit, and what get() raises.
        """
        return at_once(_ranked(get_client(), family, limit, precision, since, until))

    async def atop(
        self,
        family: str,
        limit: int = 10,
        *,
        precision: int = 3_600,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Ranked]:
        """top(), awaited."""
        return await _ranked(get_async_client(), family, limit, precision, since, until)

    def count(self, family: str | None = None) -> int:
        """How many counters there are, or in a family."""
        return sum(at_once(_ask(get_client(), [("zcard", key) for key in _indexes(family)])))

    async def acount(self, family: str | None = None) -> int:
        """count(), awaited."""
        return sum(await _ask(get_async_client(), [("zcard", key) for key in _indexes(family)]))

    def sizes(self, families: Sequence[str]) -> dict[str, int]:
        """count() of several families, in one round trip to each node."""
        return at_once(_sizes(get_client(), families))

    async def asizes(self, families: Sequence[str]) -> dict[str, int]:
        """sizes(), awaited."""
        return await _sizes(get_async_client(), families)

    def page(self, *, family: str | None = None, offset: int = 0, limit: int = 50) -> list[CounterInfo]:
        """Some of them, those that were seen last first."""
        return at_once(_page(get_client(), _indexes(family), offset, _check_limit(limit)))

    async def apage(
        self, *, family: str | None = None, offset: int = 0, limit: int = 50
    ) -> list[CounterInfo]:
        """page(), awaited."""
        return await _page(get_async_client(), _indexes(family), offset, _check_limit(limit))

    def families(self) -> list[str]:
        """What stands before a colon in the names of counters, by the alphabet."""
        return at_once(_families(get_client()))

    async def afamilies(self) -> list[str]:
        """families(), awaited."""
        return await _families(get_async_client())


async def _series(
    client: AnyRedis,
    names: Sequence[str],
    precision: int,
    since: datetime | None,
    until: datetime | None,
    fill: Fill,
) -> dict[str, Series]:
    asked, fill = ask(precision, since, until), check_fill(fill)
    parts = _parts(asked, dict.fromkeys(check_name("counter", name) for name in names))
    calls: list[Call] = [([keys.counter_samples(tag, "")], [*asked.args, *some]) for tag, some in parts]
    answers = await _read.amany(client, calls) if calls else []
    now = min((int(each[0]) for each in answers), default=0) / 1_000_000
    found = {
        name: asked.series(name, now, int(first), text, fill)
        for (_tag, some), (_now, first, *texts) in zip(parts, answers, strict=True)
        for name, text in zip(some, texts, strict=True)
    }
    return {name: found[name] for name in names}


def _parts(asked: Asked, names: dict[str, None]) -> list[tuple[str, list[str]]]:
    """Buckets, and names in them that one call may ask for."""
    by_bucket: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        by_bucket[bucket(name)].append(name)
    many = asked.names_at_once
    return [
        (tag, some[at : at + many]) for tag, some in by_bucket.items() for at in range(0, len(some), many)
    ]


async def _ranked(
    client: AnyRedis,
    family: str,
    limit: int,
    precision: int,
    since: datetime | None,
    until: datetime | None,
) -> list[Ranked]:
    asked, wanted = ask(precision, since, until), _check_limit(limit)
    check_name("family of counters", family)
    best: dict[str, int] = {}
    unread = dict.fromkeys(BUCKETS, b"")
    while unread:
        calls = [_top_call(asked, family, tag, after, wanted) for tag, after in unread.items()]
        for tag, (now, after, *pairs) in zip(list(unread), await _top.amany(client, calls), strict=True):
            asked.slices(int(now) / 1_000_000)  # raises what get() does
            best |= {text_of(name): int(count) for name, count in zip(pairs[::2], pairs[1::2], strict=True)}
            unread[tag] = after
        best = dict(heapq.nsmallest(wanted, best.items(), key=lambda each: (-each[1], each[0])))
        unread = {tag: after for tag, after in unread.items() if after}
    return [Ranked(name, count) for name, count in best.items()]


def _top_call(asked: Asked, family: str, tag: str, after: bytes, wanted: int) -> Call:
    there = [keys.counter_family(tag, family), keys.counter_samples(tag, "")]
    return there, [*asked.args, asked.plan.coarsest, after, asked.names_at_once, wanted]


def _indexes(family: str | None) -> list[str]:
    if family is None:
        return [keys.counter_names(tag) for tag in BUCKETS]
    check_name("family of counters", family)
    return [keys.counter_family(tag, family) for tag in BUCKETS]


async def _sizes(client: AnyRedis, families: Sequence[str]) -> dict[str, int]:
    found = await _ask(client, [("zcard", key) for family in families for key in _indexes(family)])
    many = len(BUCKETS)
    return {family: sum(found[at * many : (at + 1) * many]) for at, family in enumerate(families)}


async def _page(client: AnyRedis, indexes: Sequence[str], offset: int, limit: int) -> list[CounterInfo]:
    """Any of the last may lie in one bucket."""
    if type(offset) is not int or not 0 <= offset <= _MOST:
        raise InvalidLimit(f"The offset is {offset!r}; it must be a whole number from 0 to {_MOST:,}.")
    asked = [("zrange", key, 0, offset + limit - 1, True, True) for key in indexes]
    seen = [each for found in await _ask(client, asked) for each in found]
    last = heapq.nsmallest(offset + limit, seen, key=lambda each: (-each[1], each[0]))
    named = ((text_of(name), instant_of(score / 1_000)) for name, score in last[offset:])
    return [CounterInfo(name, seen_at) for name, seen_at in named if is_name(name)]  # others cannot be read


async def _families(client: AnyRedis) -> list[str]:
    found = await _ask(client, [("zrange", keys.counter_families(tag), 0, -1) for tag in BUCKETS])
    return sorted({name for some in found for name in map(text_of, some) if is_name(name)})


async def _ask(client: AnyRedis, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    def ask() -> Any:
        pipe = client.pipeline(transaction=False)
        for command, *args in commands:
            getattr(pipe, command)(*args)
        return pipe.execute()

    return list(await reading(ask))


def _check_limit(limit: object) -> int:
    if type(limit) is not int or not 1 <= limit <= _MOST:
        raise InvalidLimit(f"The limit is {limit!r}; it must be a whole number from 1 to {_MOST:,}.")
    return limit
