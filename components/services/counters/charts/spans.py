"""
Span, the time of a chart: the last seconds, minutes or hours, or from one instant to another.

"The last hour" ends now by the clock of Redis; if the default slices of a precision are not exactly that hour, Redis
is asked for the time first. The default precision is the finest for which a chart has room, and which is kept for
long enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypedDict

from django.utils.translation import gettext

from components.exceptions import InvalidValue
from components.formatting import grouped
from components.kit.validation import is_name
from components.services.counters import CounterReader, Mark, Ranked, Series
from components.services.counters.measuring import name_of_times
from components.services.counters.precisions import Plan, plan
from components.services.counters.series import is_of_events

_HOUR, _DAY = 3_600, 86_400  # seconds
#: The lengths of time that people choose from, in seconds.
SPANS = (120, 600, _HOUR, 2 * _HOUR, 6 * _HOUR, _DAY, 5 * _DAY, 7 * _DAY, 30 * _DAY, 120 * _DAY, 365 * _DAY)
#: The most slices of a chart: more are too narrow to be seen, and their table is too long.
MOST_SLICES = 1_000
_ROOM = 240  # slices of a chart by default
_ANY = "counters"  # any name of a counter, to ask for the time with

#: The most counters of a family that are added up, the highest: more would take longer than a refresh may.
MOST_SUMMED = 250
#: The most events of a family that are lines.
MOST_EVENTS = 8


class FamilySeries(Series):
    """The sum of the counters of a family. It begins and ends like them."""

    #: The number of counters.
    size: int

    @classmethod
    def of(cls, family: str, members: Sequence[Series], like: Series) -> FamilySeries:
        """Return the sum of *members*, which may be empty. *like* is a series that was read with them."""
        counted = [
            [each.count for each in slices if each.count is not None] for slices in zip(*members, strict=True)
        ]
        counts = [sum(some) if some else None for some in counted] or [None] * len(like)
        summed = cls._like(like, f"{family}:*", counts, sum(filter(None, counts)))
        summed.family, summed.size = family, len(members)
        return summed

    @property
    def is_whole(self) -> bool:
        """True if these are all counters of the family."""
        return self.size < MOST_SUMMED


class Between(TypedDict, total=False):
    since: datetime
    until: datetime


@dataclass(frozen=True)
class Span:
    """The time of a chart. Its methods raise RedisUnavailable, InvalidValue."""

    #: The length of a time that ends now; not used with *since*.
    seconds: int = 2 * _HOUR
    since: datetime | None = None
    until: datetime | None = None
    #: Seconds of a slice; None for the finest that fits.
    precision: int | None = None
    most: int = MOST_SLICES

    def read(self, names: Sequence[str]) -> dict[str, Series]:
        """Return the series of these counters, by name. If nothing was counted in a slice, its sample is None."""
        precision, between = self.asked()
        return CounterReader().read(names, precision, fill=None, **between)

    def read_marked(self, names: Sequence[str]) -> tuple[dict[str, Series], list[Mark]]:
        """Return the series of these counters, and the marks of the time."""
        precision, between = self.asked()
        return CounterReader().read_marked(names, precision, **between)

    def top(self, family: str, limit: int) -> list[Ranked]:
        """Return the counters of a family with the highest sums. Raises InvalidValue and InvalidName."""
        precision, between = self.asked()
        return CounterReader().top(family, limit, precision=precision, **between)

    def lines(self, names: Sequence[str], families: Sequence[str] = ()) -> tuple[list[Series], list[Mark]]:
        """
        Return counters, and families as one line each, all with the same slices, and the marks of this time. Of a
        family of different events, such as "tasks", each counter is a line. Raises InvalidName.
        """
        apart = [each for each in families if is_of_events(each)]
        names = [*names, *(each.name for family in apart for each in self.top(family, MOST_EVENTS))]
        families = [each for each in families if each not in apart]
        members = {family: [each.name for each in self.top(family, MOST_SUMMED)] for family in families}
        found, marks = self.read_marked([*names, *(name for some in members.values() for name in some), _ANY])
        like = found[_ANY]
        summed = [
            FamilySeries.of(each, [found[name] for name in some], like) for each, some in members.items()
        ]
        return [*(found[name] for name in dict.fromkeys(names)), *summed], marks

    def asked(self) -> tuple[int, Between]:
        """Return the precision, and the instants between which to ask."""
        chosen = plan()
        if self.precision is not None:
            chosen.check(self.precision)
        if self.since is None:
            return self._last(chosen)
        if self.until is not None and self.until <= self.since:
            wrong = gettext("The time is reversed: it begins at %(since)s, and ends at %(until)s.")
            raise InvalidValue(wrong % {"since": self.since, "until": self.until})
        now = self._now(chosen)
        seconds = (min(self.until or now, now) - self.since).total_seconds()
        ago = (now - self.since).total_seconds()
        precision = self.precision or _finest(chosen, seconds, ago, spare=2)
        if ago <= chosen.slices(precision) * precision:  # if it is not, the error is raised here
            self._check(seconds, precision)
        return precision, {"since": self.since, **({"until": self.until} if self.until else {})}

    def _last(self, chosen: Plan) -> tuple[int, Between]:
        if self.seconds < 1:
            wrong = gettext("The time is %(seconds)s s long; it must be at least 1 s.")
            raise InvalidValue(wrong % {"seconds": grouped(self.seconds)})
        precision = self.precision or _finest(chosen, self.seconds, self.seconds, spare=0)
        slices = max(self.seconds // precision, 1)
        if slices > (kept := chosen.slices(precision)):
            wrong = gettext(
                "The last %(seconds)s s are too long: of slices of %(precision)s s the last %(count)s are kept. Ask "
                "for longer slices, or for a shorter time."
            )
            facts = {"seconds": self.seconds, "precision": precision, "count": kept}
            raise InvalidValue(wrong % {name: grouped(number) for name, number in facts.items()})
        self._check(self.seconds, precision)
        if slices == chosen.samples:
            return precision, {}
        slices = min(slices, max(kept - 1, 1))  # the oldest may expire during the request
        first = int(self._now(chosen).timestamp()) // precision - slices + 1
        return precision, {"since": datetime.fromtimestamp(first * precision, UTC)}

    def _now(self, chosen: Plan) -> datetime:
        return CounterReader().read([_ANY], chosen.precisions[0])[_ANY].until

    def _check(self, seconds: float, precision: int) -> None:
        if seconds / precision > self.most:
            wrong = gettext(
                "These are %(count)s slices of %(precision)s s; %(most)s can be drawn. Ask for longer slices, or for "
                "a shorter time."
            )
            facts = {"count": int(seconds / precision), "precision": precision, "most": self.most}
            raise InvalidValue(wrong % {name: grouped(number) for name, number in facts.items()})


def past_times(event: str, names: Sequence[str], seconds: int = 2 * _HOUR) -> dict[str, Series]:
    """
    Return how long an event took of each of these names, as took() measured it, by the slices of the last seconds, in
    one round trip. A name that no counter can have is left out.
    """
    counters = {name: name_of_times(event, name) for name in names}
    counters = {name: counter for name, counter in counters.items() if is_name(counter)}
    found = Span(seconds).read(list(counters.values())) if counters else {}
    return {name: found[counter] for name, counter in counters.items()}


def _finest(chosen: Plan, seconds: float, ago: float, *, spare: int) -> int:
    """Return the finest precision that has room for that many seconds, and reaches back that far."""
    for precision in chosen.precisions:
        reach = (chosen.slices(precision) - spare) * precision
        if seconds / precision <= _ROOM and ago <= reach:
            return precision
    return chosen.precisions[-1]


def offered_spans() -> list[int]:
    """Return the lengths in seconds to choose from: those for which the settings keep slices."""
    longest = max(precision * plan().slices(precision) for precision in plan().precisions)
    return [*(each for each in SPANS if each < longest), longest]
