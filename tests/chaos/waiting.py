"""
How long tasks waited, counted only while Redis was up, their queue was not paused, and a worker was idle.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

_Spans = Iterable[tuple[float, float]]


def without(spans: _Spans, holes: _Spans) -> Iterator[tuple[float, float]]:
    """What of *spans* lies in none of *holes*."""
    gaps = sorted(holes)
    for begin, end in spans:
        for gap_begin, gap_end in gaps:
            if begin < gap_end and gap_begin < end:
                if begin < gap_begin:
                    yield begin, gap_begin
                begin = gap_end
        if begin < end:
            yield begin, end


class Countable:
    """The time in which at least one of *idle* and none of *excuses* was the case."""

    def __init__(self, idle: _Spans, excuses: _Spans) -> None:
        changes = [change for begin, end in idle for change in ((begin, 1, 0), (end, -1, 0))]
        changes += [change for begin, end in excuses for change in ((begin, 0, 1), (end, 0, -1))]
        self._begins: list[float] = []
        self._ends: list[float] = []
        workers = reasons = 0
        began: float | None = None
        for at, worker, reason in sorted(changes):
            workers, reasons = workers + worker, reasons + reason
            counts = workers > 0 and reasons == 0
            if counts and began is None:
                began = at
            elif not counts and began is not None:
                self._begins.append(began)
                self._ends.append(at)
                began = None
        lengths = (end - begin for begin, end in zip(self._begins, self._ends, strict=True))
        self._before = [0.0, *accumulate(lengths)]  # the length of all spans before each

    def between(self, begin: float, end: float) -> float:
        """How many seconds of it there are from *begin* to *end*."""
        return max(0.0, self._until(end) - self._until(begin))

    def _until(self, at: float) -> float:
        index = bisect_right(self._begins, at)
        if not index:
            return 0.0
        return self._before[index - 1] + min(at, self._ends[index - 1]) - self._begins[index - 1]
