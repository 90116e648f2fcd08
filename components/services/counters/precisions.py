"""
Which precisions are stored, and which are sums of those.

A slice of 5 s is five of 1 s, a day is 24 hours: what a stored precision divides into at most 24 slots is added up
when it is read. By default that leaves 1 s, 1 min and 1 h to be stored, so an update writes three numbers. A stored
one is kept for as long as the longest that is made of it needs. All slices begin at multiples of their length in UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from components.conf import conf
from components.exceptions import InvalidPrecision

_MOST_SLOTS = 24  # in a slice: hours in a day

#: Slots in one key. So few that Redis keeps them in a few bytes each, and finds one by looking through them.
WINDOW = 120


class Plan:
    """What COMPONENTS["COUNTER_PRECISIONS"] and ["COUNTER_SAMPLES"] come to."""

    def __init__(self, precisions: Sequence[int], samples: int) -> None:
        self.precisions = tuple(sorted(set(precisions)))
        self.samples = samples
        #: Precision -> the stored one that it is made of, or itself.
        self.made_of: dict[int, int] = {}
        #: Stored precision -> for how many seconds its slots are kept.
        self.kept: dict[int, int] = {}
        for precision in self.precisions:
            stored = next((each for each in reversed(self.kept) if _divides(each, precision)), precision)
            self.made_of[precision] = stored
            self.kept[stored] = max(self.kept.get(stored, 0), precision * samples)
        #: What is stored, as the script takes it.
        self.stored = " ".join(f"{stored}:{seconds}" for stored, seconds in self.kept.items())
        self.coarsest = max(self.kept)

    def check(self, precision: object) -> int:
        """*precision*, if it is one. Raises InvalidPrecision."""
        if type(precision) is not int or precision not in self.made_of:
            known = ", ".join(f"{each:,}" for each in self.precisions)
            raise InvalidPrecision(
                f"The precision is {precision!r}; it must be one of these, in seconds: {known}."
            )
        return precision

    def slices(self, precision: int) -> int:
        """How many slices of it are kept, with the one that is not yet over."""
        return self.kept[self.made_of[precision]] // precision

    def longest_ttl(self, stored: int) -> int:
        """Seconds, within which the time to live of each key of a stored precision lies."""
        return WINDOW * stored + self.kept[stored]


def _divides(stored: int, precision: int) -> bool:
    return precision % stored == 0 and precision // stored <= _MOST_SLOTS


def plan() -> Plan:
    """The one of the settings, as of now."""
    return _plan(tuple(conf().counter_precisions), conf().counter_samples)


_plan = cache(Plan)
