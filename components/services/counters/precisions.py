"""
Precisions: which of them are stored, which are sums of stored ones, and queries for their slices.

A slice of 5 s is the sum of five slices of 1 s, and a day of 24 hours: a precision that consists of at most 24 slots
of a stored one is added up when it is read. By default, only 1 s, 1 min and 1 h are stored, so an update writes three
numbers. A stored precision is kept for as long as the longest precision that is made of it needs. All slices begin at
multiples of their length in UTC.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import accumulate, islice, repeat
from operator import add
from typing import Any

from components.conf import conf
from components.exceptions import InvalidValue
from components.kit.translation import gettext, grouped
from components.services.counters.histograms import Measured, read_histogram
from components.services.counters.series import Fill, Sample, Series, instant

_MOST_SLOTS = 24  # in a slice: hours in a day
_AT_ONCE = 20_000  # slots that a script looks at: a few milliseconds of the server

_HISTOGRAM = 60  # seconds: histograms of shorter slices would have few values, and take much memory
_MOST_HISTOGRAMS = 744  # slots of a histogram that are kept: the hours of 31 days

#: How many times as long as a count a slot of a histogram takes to be read.
HEAVIER = 20

#: Slots in one key. So few that Redis keeps them in a few bytes each, and finds one by looking through them.
WINDOW = 120


class Plan:
    """The plan that follows from COMPONENTS["COUNTER_PRECISIONS"] and ["COUNTER_SAMPLES"]."""

    def __init__(self, precisions: Sequence[int], samples: int) -> None:
        self.precisions = tuple(sorted(set(precisions)))
        self.samples = samples
        #: Precision -> the stored one that it is made of, or itself.
        self.made_of: dict[int, int] = {}
        #: Stored precision -> for how many seconds its slots are kept.
        self.kept: dict[int, int] = {}
        for precision in self.precisions:
            finer = (each for each in reversed(self.kept) if precision % each == 0)
            stored = next((each for each in finer if precision // each <= _MOST_SLOTS), precision)
            self.made_of[precision] = stored
            self.kept[stored] = max(self.kept.get(stored, 0), precision * samples)
        #: What is stored, as add.lua takes it.
        self.stored = " ".join(f"{stored}:{seconds}" for stored, seconds in self.kept.items())
        self.coarsest = max(self.kept)
        #: Stored precision of histograms -> for how many seconds its slots are kept.
        self.histograms = {
            stored: min(seconds, stored * _MOST_HISTOGRAMS)
            for stored, seconds in self.kept.items()
            if stored >= min(_HISTOGRAM, self.coarsest)
        }
        #: The precisions of slices that have histograms.
        self.measured = [each for each in self.precisions if self.made_of[each] in self.histograms]
        self.stored_histograms = " ".join(f"{each}:{seconds}" for each, seconds in self.histograms.items())

    def check(self, precision: object) -> int:
        """Return *precision* if it is one of these. Raises InvalidValue."""
        if type(precision) is not int or precision not in self.made_of:
            known = ", ".join(grouped(each) for each in self.precisions)
            wrong = gettext("The precision is %(precision)r; it must be one of these, in seconds: %(known)s.")
            raise InvalidValue(wrong % {"precision": precision, "known": known})
        return precision

    def check_histogram(self, precision: object) -> int:
        """Return *precision* if there are histograms of its slices. Raises InvalidValue."""
        checked = self.check(precision)
        if checked not in self.measured:
            wrong = gettext(
                "The precision is %(precision)s s; of measured values it must be at least %(least)s s."
            )
            raise InvalidValue(wrong % {"precision": checked, "least": self.measured[0]})
        return checked

    def finest_histogram(self, seconds: int) -> int:
        """Return the finest precision of measured values whose usual number of slices covers so many seconds."""
        return next((each for each in self.measured if each * self.samples >= seconds), self.measured[-1])

    def slices(self, precision: int) -> int:
        """Return how many slices of it are kept, with the one that is not yet over."""
        return self.kept[self.made_of[precision]] // precision


def plan() -> Plan:
    """Return the plan for the current settings."""
    return _plan(tuple(conf().counter_precisions), conf().counter_samples)


_plan = cache(Plan)


@dataclass(frozen=True)
class Asked:
    """A query for slices of counters."""

    plan: Plan
    precision: int
    #: Seconds since 1970; None if nothing was said.
    since: int | None
    until: int | None

    @property
    def args(self) -> dict[str, Any]:
        """The arguments of _slices.lua."""
        stored = self.plan.made_of[self.precision]
        return {
            "slice": self.precision,
            "precision": stored,
            "kept": self.plan.kept[stored],
            "since": "" if self.since is None else self.since,
            "many": self.plan.samples,
            "till": "" if self.until is None else self.until,
        }

    def names_at_once(self, weight: int = 1) -> int:
        """Return how many counters a script may look at, if it takes *weight* times as long as with counts."""
        stored = self.plan.made_of[self.precision]
        kept = self.plan.kept[stored]
        if self.since is None:
            seconds = (self.plan.samples + 1) * self.precision
        else:
            seconds = kept if self.until is None else self.until - self.since + 2 * self.precision
        return max(1, _AT_ONCE // (min(kept, seconds) // stored) // weight)

    def slices(self, now: float) -> range:
        """Return the slices, as multiples of the precision, when it is *now* for the server. Raises InvalidValue."""
        last = min(int(now), math.inf if self.until is None else self.until - 1) // self.precision
        oldest = int(now) // self.precision - self.plan.slices(self.precision) + 1
        if self.since is None:
            first = max(oldest, int(last) - self.plan.samples + 1)
        else:
            first = self.since // self.precision
            if self.since > now:
                wrong = gettext("%(since)s lies ahead: the server's clock says %(now)s.")
                raise InvalidValue(wrong % {"since": instant(self.since), "now": instant(now)})
        if first < oldest or last < oldest:
            wrong = gettext(
                "%(at)s is too long ago: of slices of %(seconds)s s the last %(count)s are kept. Ask for longer "
                "slices."
            )
            facts = {
                "at": instant(max(0, min(first, last) * self.precision)),
                "seconds": grouped(self.precision),
                "count": grouped(self.plan.slices(self.precision)),
            }
            raise InvalidValue(wrong % facts)
        return range(first, int(last) + 1)

    def series(self, name: str, now: float, first: int, text: bytes, fill: Fill) -> Series:
        """
        Return the series of one counter from the answer of read.lua; its first slice begins at the second *first*.
        """
        slices = self.slices(now)
        counts = [int(each) if each else None for each in self._texts(slices, first, text)]
        at, instants = instant(slices.start * self.precision), self._instants(slices)
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

    def histograms(self, now: float, first: int, text: bytes) -> list[Measured]:
        """Return the histogram of each slice from the answer of histograms.lua."""
        slices = self.slices(now)
        texts = self._texts(slices, first, text)
        instants = self._instants(slices)
        return [Measured(at, read_histogram(each)) for at, each in zip(instants, texts, strict=True)]

    def _texts(self, slices: range, first: int, text: bytes) -> list[bytes]:
        """Return the text of each slice, from an answer whose first slice begins at the second *first*."""
        ahead = slices.start - first // self.precision
        # Another node's clock may be so far ahead of the one that says now that it has not answered of the first.
        texts = ([b""] * -ahead + text.split(b",")[max(0, ahead) :])[: len(slices)]
        return texts + [b""] * (len(slices) - len(texts))

    def _instants(self, slices: range) -> Iterable[datetime]:
        at, step = instant(slices.start * self.precision), timedelta(seconds=self.precision)
        return islice(accumulate(repeat(step), add, initial=at), len(slices))


def ask(precision: object, since: object, until: object) -> Asked:
    """Return the checked query. Raises InvalidValue."""
    chosen = plan()
    first = None if since is None else math.floor(_seconds("since", since))
    end = None if until is None else math.ceil(_seconds("until", until))
    if since is not None and until is not None and _seconds("since", since) >= _seconds("until", until):
        raise InvalidValue(f"The time is reversed: since is {since}, until is {until}.")
    return Asked(chosen, chosen.check(precision), first, end)


def _seconds(what: str, at: object) -> float:
    if not isinstance(at, datetime) or at.utcoffset() is None:
        raise InvalidValue(f"{what} is {at!r}; it must be an aware datetime.")
    return at.timestamp()


def check_fill(fill: object) -> Fill:
    """Return *fill* if gaps can be filled with it. Raises ValueError."""
    if fill is None or fill == "skip" or type(fill) is int:
        return fill
    raise ValueError(f'fill is {fill!r}; it must be a whole number, None or "skip".')
