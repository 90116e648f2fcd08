"""
What counters are made of: checks, keys, calls that add, and answers that become samples.

A counter has a hash for each stored precision and window of 120 slots. The script names it by the server's time, so
no clock of a client has a part in it, and gives it its end when it is made: there is nothing to clean. Counters lie
in buckets, so that one call adds to many of them, and the bucket knows their names by when each was last seen.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, islice, repeat
from operator import add
from typing import Any

from components.exceptions import CountRefused, InvalidCount, InvalidRange
from components.kit.buckets import bucket
from components.kit.scripts import Script
from components.services.counters.precisions import Plan, plan
from components.services.counters.records import Fill, Sample, Series, instant, is_time
from components.services.counters.sources import Source, give_back, take

#: Up to here Lua counts exactly; a slot that would count further stays there.
MAX_COUNT = 2**53 - 1

_BATCH = 500  # counters in a call: a few milliseconds of the server
_AT_ONCE = 20_000  # slots that a script looks at: as long

add_script = Script("counters/add")


@dataclass(slots=True, eq=False)  # not frozen, which costs half a microsecond in each update
class Addition:
    """A call that adds to counters of one bucket. Repeated, it counts once, until it is over."""

    tag: str
    source: Source
    args: list[str | int]
    #: What it adds, for telling: of what was counted, and of microseconds.
    size: int
    microseconds: int
    #: When it was sent first, by components.kit.leases.clock().
    sent_at: float = 0.0

    @property
    def keys(self) -> Sequence[str]:
        return self.source.keys

    def check(self, answer: int) -> None:
        """Raises CountRefused if the script says so."""
        if not answer:
            raise CountRefused(
                f"A key of counters in the bucket {self.tag} holds something else; "
                "`manage.py cleancounters` removes it."
            )

    def is_over(self) -> None:
        """It was answered, or is given up."""
        give_back(self.tag, self.source)


def addition(tag: str, counts: Iterable[tuple[str, int]]) -> Addition:
    """A call that adds *counts* to counters of the bucket *tag*."""
    stored, source, sizes = plan().stored, take(tag), {False: 0, True: 0}
    args: list[str | int] = [source.next_number(), stored]
    for name, count in counts:
        args += (name, count)
        sizes[is_time(name)] += abs(count)
    return Addition(tag, source, args, sizes[False], sizes[True])


def additions(counts: Mapping[str, int]) -> list[Addition]:
    """As few calls as add all of *counts*."""
    by_bucket: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, count in counts.items():
        by_bucket[bucket(name)].append((name, max(-MAX_COUNT, min(MAX_COUNT, count))))
    calls = []
    for tag, pairs in by_bucket.items():
        rest = iter(pairs)
        while some := list(islice(rest, _BATCH)):
            calls.append(addition(tag, some))
    return calls


@dataclass(frozen=True)
class Asked:
    """What of counters is asked for."""

    plan: Plan
    precision: int
    #: Seconds; None where nothing was said.
    since: int | None
    until: int | None

    @property
    def args(self) -> list[Any]:
        """As the scripts take it."""
        stored = self.plan.made_of[self.precision]
        span = [self.precision, stored, self.plan.kept[stored]]
        since, until = ("" if each is None else each for each in (self.since, self.until))
        return [*span, since, self.plan.samples, until]

    @property
    def names_at_once(self) -> int:
        """How many counters a script may look at."""
        return max(1, _AT_ONCE // self._most_slots())

    def _most_slots(self) -> int:
        stored = self.plan.made_of[self.precision]
        kept = self.plan.kept[stored]
        if self.since is None:
            seconds = (self.plan.samples + 1) * self.precision
        else:
            seconds = kept if self.until is None else self.until - self.since + 2 * self.precision
        return min(kept, seconds) // stored

    def slices(self, now: float) -> range:
        """Which they are at the server's *now*, as multiples of the precision. Raises InvalidRange."""
        last = min(int(now), math.inf if self.until is None else self.until - 1) // self.precision
        oldest = int(now) // self.precision - self.plan.slices(self.precision) + 1
        if self.since is None:
            first = max(oldest, int(last) - self.plan.samples + 1)
        else:
            first = self.since // self.precision
            if self.since > now:
                raise InvalidRange(
                    f"{instant(self.since)} lies ahead: the server's clock says {instant(now)}."
                )
        if first < oldest or last < oldest:
            raise InvalidRange(
                f"{instant(max(0, min(first, last) * self.precision))} is too long ago: of slices of "
                f"{self.precision:,} s the last {self.plan.slices(self.precision):,} are kept. Ask for longer ones."
            )
        return range(first, int(last) + 1)

    def series(self, name: str, now: float, first: int, text: bytes, fill: Fill) -> Series:
        """What read.lua answered of one counter, whose first slice begins at the second *first*."""
        slices = self.slices(now)
        ahead = slices.start - first // self.precision
        # Another node's clock may be so far ahead of the one that says now that it has not answered of the first.
        texts = [b""] * -ahead + text.split(b",")[max(0, ahead) :]
        counts = [int(each) if each else None for each in texts[: len(slices)]]
        counts += [None] * (len(slices) - len(counts))
        at, step = instant(slices.start * self.precision), timedelta(seconds=self.precision)
        instants = islice(accumulate(repeat(step), add, initial=at), len(slices))
        filler = None if fill == "skip" else fill
        return Series(
            [
                Sample(at, filler if count is None else count)
                for at, count in zip(instants, counts, strict=True)
                if count is not None or fill != "skip"
            ],
            name=name,
            precision=self.precision,
            since=at,
            until=instant(min(now, slices.stop * self.precision)),
            total=sum(filter(None, counts)),
        )


def ask(precision: object, since: object, until: object) -> Asked:
    """Raises InvalidPrecision and InvalidRange."""
    chosen = plan()
    first = None if since is None else math.floor(_seconds("since", since))
    end = None if until is None else math.ceil(_seconds("until", until))
    if since is not None and until is not None and _seconds("since", since) >= _seconds("until", until):
        raise InvalidRange(f"The time is turned round: since is {since}, until is {until}.")
    return Asked(chosen, chosen.check(precision), first, end)


def _seconds(what: str, at: object) -> float:
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise InvalidRange(f"{what} is {at!r}; it must be an aware datetime.")
    return at.timestamp()


def check_count(count: object) -> int:
    """*count*, if so many can be counted. Raises InvalidCount."""
    if type(count) is not int or not -MAX_COUNT <= count <= MAX_COUNT:
        raise InvalidCount(f"The count is {count!r}; it must be a whole number, between -2^53 and 2^53.")
    return count


def check_fill(fill: object) -> Fill:
    """Raises ValueError if gaps cannot be filled so."""
    if fill is None or fill == "skip" or type(fill) is int:
        return fill
    raise ValueError(f'fill is {fill!r}; it must be a whole number, None or "skip".')
