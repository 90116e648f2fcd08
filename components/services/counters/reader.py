"""
CounterReader: several counters at once, the highest of a family, and the list of counters.

A query makes one call for each bucket, and sends the calls to a node together. To find the highest counters of a
family, it adds up those that were seen in the requested time, a few hundred in each call, so that no call takes long.
Reading changes nothing.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from components.kit.client import AnyRedis
from components.kit.decoding import instant_of, text_of
from components.kit.keyspace import BUCKETS, bucket, by_call
from components.kit.readings import Ask, Reading, answers_to
from components.kit.scripts import Script, all_well, pipelined
from components.kit.sync_async import both
from components.kit.validation import check_int, check_name, check_several, is_name
from components.services.counters.counter import READ
from components.services.counters.histograms import Histogram, Measured, read_histogram
from components.services.counters.keys import CounterKeys, FamilyKeys
from components.services.counters.marks import Mark, marks_key, read_marks
from components.services.counters.precisions import HEAVIER, Asked, ask, check_fill, plan
from components.services.counters.series import Fill, Series

TOP, HISTOGRAMS, SIZES = (Script(f"counters/{verb}") for verb in ("top", "histograms", "sizes"))

_MOST = 10_000  # of a family, or of names
_HOUR = 3_600  # seconds


@dataclass(frozen=True)
class Ranked:
    """A counter among those of its family."""

    name: str
    count: int


@dataclass(frozen=True)
class CounterInfo:
    """A counter in the list of counters."""

    name: str
    #: When it was first counted in the slot of the coarsest stored precision in which it was last counted.
    seen_at: datetime


class CounterReader:
    """Queries for several counters. Every method raises RedisUnavailable."""

    async def _read(
        self,
        client: AnyRedis,
        names: Sequence[str],
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        fill: Fill = 0,
    ) -> dict[str, Series]:
        """
        Return the series of several counters, by name, as Counter.get() does, in one round trip to each node. All
        have the same slices. Raises the errors of get(), and InvalidName.
        """
        asked, fill = ask(precision, since, until), check_fill(fill)
        parts = by_call(_checked(names), asked.names_at_once())
        calls = [READ.call(CounterKeys(tag), names=some, **asked.args) for tag, some in parts]
        answers = await READ.amany(client, calls) if calls else []
        return _all_series(asked, fill, names, parts, answers)

    read, aread = both(_read)

    def read_marked(
        self,
        names: Sequence[str],
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[dict[str, Series], list[Mark]]:
        """
        Return what read() does, with None in gaps, and the marks of this time, in the same round trip. Raises what
        read() does.
        """
        asked = ask(precision, since, until)
        parts = by_call(_checked(names), asked.names_at_once())
        asks = [_ask_to_read(asked, tag, some) for tag, some in parts]
        asks.append(Ask.of("zrange", marks_key(), 0, -1, withscores=True))
        *answers, marked = all_well(answers_to(asks))
        found = _all_series(asked, None, names, parts, answers)
        first = next(iter(found.values()), None)
        marks = [mark for mark in read_marks(marked) if first and first.since <= mark.at <= first.until]
        return found, marks

    async def _histograms(
        self,
        client: AnyRedis,
        names: Sequence[str],
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> dict[str, Histogram]:
        """
        Return the histograms of several counters, by name, each of all slices that Counter.get() would return, merged
        by the server. That of a counter that measured nothing is empty. Raises the errors of get(), InvalidValue also
        for a precision without histograms, and InvalidName.
        """
        asked = ask(precision, since, until)
        found = await self._ask_histograms(client, asked, names, is_merged=True)
        return {name: read_histogram(text.partition(b",")[0]) for name, (_now, _first, text) in found.items()}

    histograms, ahistograms = both(_histograms)

    async def _histogram_slices(
        self,
        client: AnyRedis,
        names: Sequence[str],
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> dict[str, list[Measured]]:
        """Return the histogram of each slice, for several counters, by name. Raises what histograms() does."""
        asked = ask(precision, since, until)
        found = await self._ask_histograms(client, asked, names, is_merged=False)
        now = min((now for now, _first, _text in found.values()), default=0.0)
        return {name: asked.histograms(now, first, text) for name, (_now, first, text) in found.items()}

    histogram_slices, ahistogram_slices = both(_histogram_slices)

    async def _ask_histograms(
        self, client: AnyRedis, asked: Asked, names: Sequence[str], *, is_merged: bool
    ) -> dict[str, tuple[float, int, bytes]]:
        """Return the answers of histograms.lua: the server's time, the first second, and the text of each name."""
        stored = asked.plan.made_of[asked.plan.check_histogram(asked.precision)]
        args = {**asked.args, "kept": asked.plan.histograms[stored], "merged": int(is_merged)}
        wanted = _checked(names)
        parts = by_call(wanted, asked.names_at_once(HEAVIER))
        calls = [HISTOGRAMS.call(CounterKeys(tag), names=some, **args) for tag, some in parts]
        answers = await HISTOGRAMS.amany(client, calls) if calls else []
        found = {}
        for (_tag, some), (now, first, *texts) in zip(parts, answers, strict=True):
            asked.slices(int(now) / 1_000_000)  # raises what get() does
            for name, text in zip(some, texts, strict=True):
                found[name] = int(now) / 1_000_000, int(first), text
        return {name: found[name] for name in names}

    async def _top(
        self,
        client: AnyRedis,
        family: str,
        limit: int = 10,
        *,
        precision: int = 3_600,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Ranked]:
        """
        Return the counters of a family with the highest sums in the slices that Counter.get() would return, highest
        first. The cost is the number of these counters times that of the slices. Raises InvalidValue, InvalidName,
        and what get() raises.
        """
        asked, wanted = ask(precision, since, until), check_int("limit", limit, 1, _MOST)
        check_name("family of counters", family)
        request = {
            **asked.args,
            "coarsest": asked.plan.coarsest,
            "some": asked.names_at_once(),
            "best": wanted,
        }
        best: dict[str, int] = {}
        unread = dict.fromkeys(BUCKETS, b"")
        while unread:
            calls = [
                TOP.call(FamilyKeys(tag, family), after=after, **request) for tag, after in unread.items()
            ]
            for tag, (now, after, *pairs) in zip(list(unread), await TOP.amany(client, calls), strict=True):
                asked.slices(int(now) / 1_000_000)  # raises what get() does
                counts = zip(pairs[::2], pairs[1::2], strict=True)
                best |= {text_of(name): int(count) for name, count in counts}
                unread[tag] = after
            best = dict(heapq.nsmallest(wanted, best.items(), key=lambda each: (-each[1], each[0])))
            unread = {tag: after for tag, after in unread.items() if after}
        return [Ranked(name, count) for name, count in best.items()]

    top, atop = both(_top)

    async def _count(self, client: AnyRedis, family: str | None = None) -> int:
        """Return how many counters there are, or how many of a family."""
        return sum(await pipelined(client, _indexes(family), lambda pipe, key: pipe.zcard(key)))

    count, acount = both(_count)

    async def _sizes(self, client: AnyRedis, families: Sequence[str]) -> dict[str, int]:
        """Return how many counters each of these families has, in a round trip to each node. Raises InvalidName."""
        several = dict.fromkeys(check_several("families", families))
        wanted = [check_name("family of counters", family) for family in several]
        found = await SIZES.amany(client, [SIZES.call(CounterKeys(tag), families=wanted) for tag in BUCKETS])
        return {family: sum(some) for family, some in zip(wanted, zip(*found, strict=True), strict=True)}

    sizes, asizes = both(_sizes)

    async def _page(
        self, client: AnyRedis, *, family: str | None = None, offset: int = 0, limit: int = 50
    ) -> list[CounterInfo]:
        """Return a page of the counters, the most recently seen first. Raises InvalidValue."""
        indexes, limit = _indexes(family), check_int("limit", limit, 1, _MOST)
        check_int("offset", offset, 0, _MOST)
        # Any of them may lie in one bucket.
        most = offset + limit - 1
        found = await pipelined(
            client, indexes, lambda pipe, key: pipe.zrange(key, 0, most, desc=True, withscores=True)
        )
        seen = [each for some in found for each in some]
        last = heapq.nsmallest(offset + limit, seen, key=lambda each: (-each[1], each[0]))
        named = ((text_of(name), instant_of(score / 1_000)) for name, score in last[offset:])
        return [CounterInfo(name, at) for name, at in named if is_name(name)]  # others cannot be read

    page, apage = both(_page)

    async def _families(self, client: AnyRedis) -> list[str]:
        """Return the families, in alphabetical order: the parts before a colon in the names of counters."""
        found = await pipelined(
            client, BUCKETS, lambda pipe, tag: pipe.zrange(CounterKeys(tag).families, 0, -1)
        )
        # A large family is in every bucket.
        names = map(text_of, {name for some in found for name in some})
        return sorted({name for name in names if is_name(name)})

    families, afamilies = both(_families)


def recent(name: str) -> Reading[Series]:
    """Read the latest slices of a counter, the finest that reach back an hour, to be gathered with other figures."""
    chosen = plan()
    reaching = (each for each in chosen.precisions if each * chosen.samples >= _HOUR)
    asked = ask(next(reaching, chosen.precisions[-1]), None, None)
    [(now, first, text)] = yield [_ask_to_read(asked, bucket(name), [check_name("counter", name)])]
    return asked.series(name, int(now) / 1_000_000, int(first), text, 0)


def _ask_to_read(asked: Asked, tag: str, names: Sequence[str]) -> Ask:
    keys = CounterKeys(tag)
    return Ask(keys.samples, partial(READ.put, keys=keys, names=names, **asked.args))


def _checked(names: Iterable[str]) -> dict[str, None]:
    """Return the names, each once. Raises InvalidName, InvalidValue."""
    return dict.fromkeys(check_name("counter", name) for name in check_several("counters", names))


def _indexes(family: str | None) -> list[str]:
    """Return the keys of the names of all counters, or of a family. Raises InvalidName."""
    if family is None:
        return [CounterKeys(tag).names for tag in BUCKETS]
    check_name("family of counters", family)
    return [FamilyKeys(tag, family).family for tag in BUCKETS]


def _all_series(
    asked: Asked,
    fill: Fill,
    names: Sequence[str],
    parts: Sequence[tuple[str, list[str]]],
    answers: Sequence[Any],
) -> dict[str, Series]:
    now = min((int(each[0]) for each in answers), default=0) / 1_000_000
    found = {
        name: asked.series(name, now, int(first), text, fill)
        for (_tag, some), (_now, first, *texts) in zip(parts, answers, strict=True)
        for name, text in zip(some, texts, strict=True)
    }
    return {name: found[name] for name in names}
