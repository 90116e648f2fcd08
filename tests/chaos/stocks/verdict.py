"""
The verdict: what was read is held against what was committed, by the one clock of the machine.

A read of a row must not be older than what any read that had ended before it began has seen; than what was committed
when an invalidation began that had ended by then; than what was committed longer ago than the row may be old. Nor may
it be what nobody had begun to commit. That there is no row may be any of its deletions: it counts as the oldest that
these allow.
"""

from __future__ import annotations

import heapq
import json
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.services.rows import LEASE
from tests.chaos.stocks import plan
from tests.chaos.stocks.notes import read_notes

#: Seconds for which a row is good that is on no schedule, as the model says.
DELAY = 1.0


@dataclass
class History:
    """The committed writes of a row, by their numbers; the 0th is what was there at first."""

    begun: list[float] = field(default_factory=lambda: [0.0])
    done: list[float] = field(default_factory=lambda: [0.0])
    is_deletion: list[bool] = field(default_factory=lambda: [False])

    def committed(self, at: float) -> int:
        """The number of the last one that surely was, at that time."""
        return bisect_right(self.done, at) - 1

    def deletion(self, least: int, before: float) -> int | None:
        """The number of the first deletion that may have been seen then, of those not older than *least*."""
        numbers = range(least, len(self.begun))
        return next((n for n in numbers if self.is_deletion[n] and self.begun[n] < before), None)


@dataclass(frozen=True, order=True)
class Read:
    began: float
    at: float
    way: str
    number: int | None


class Verdict:
    """Of all that stands in *folder*: its complaints, and figures."""

    def __init__(self, folder: Path) -> None:
        self.complaints: list[str] = []
        self.end: dict[str, Any] = json.loads((folder / "end.json").read_text())
        self._notes: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for note in read_notes(folder):
            self._notes[note["kind"]].append(note)
        self.histories = self._histories()
        self.reads = self._reads()
        self.replaced: list[float] = []
        self._judge_reads()
        self._judge_end()

    def _histories(self) -> dict[int, History]:
        instants = {
            kind: {note["attempt"]: note["at"] for note in self._notes[kind]}
            for kind in ("locked", "committing", "committed")
        }
        found = {row: History() for row in plan.ROWS}
        changes = sorted(self.end["changes"], key=lambda change: (change[1], change[2]))
        for attempt, row, number, is_deletion in changes:
            history = found[row]
            if number != len(history.begun):
                self.complaints.append(f"The database has no write {len(history.begun)} of the row {row}.")
            # Of a writer that was killed it is not known when it was done, but whoever wrote next came after it.
            history.done[-1] = min(history.done[-1], instants["locked"][attempt])
            history.begun.append(instants["committing"][attempt])
            history.done.append(instants["committed"].get(attempt, math.inf))
            history.is_deletion.append(is_deletion)
        return found

    def _reads(self) -> dict[int, list[Read]]:
        found: dict[int, list[Read]] = {row: [] for row in plan.ROWS}
        for note in self._notes["read"]:
            for row, number in note["rows"].items():
                found[int(row)].append(Read(note["began"], note["at"], note["way"], number))
        return found

    def _judge_reads(self) -> None:
        invalidations: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
        for note in self._notes["invalidated"]:
            invalidations[note["row"]].append((note["at"], note["began"]))
        for row, reads in self.reads.items():
            self._judge_row(row, sorted(reads), sorted(invalidations[row]))

    def _judge_row(self, row: int, reads: list[Read], invalidations: list[tuple[float, float]]) -> None:
        history, next_one = self.histories[row], 0
        ended: list[tuple[float, int]] = []  # of reads: when, and what was seen
        seen = told = 0
        for read in reads:
            while ended and ended[0][0] < read.began:
                seen = max(seen, heapq.heappop(ended)[1])
            while next_one < len(invalidations) and invalidations[next_one][0] < read.began:
                told = max(told, history.committed(invalidations[next_one][1]))
                next_one += 1
            aged = history.committed(read.began - oldest(row, read.way))
            least = max(seen, told, aged)
            number = history.deletion(least, read.at) if read.number is None else read.number
            wrong = self._wrong(history, read, number, seen, told, aged)
            if wrong:
                self.complaints.append(f"The row {row} was {read}, {wrong}.")
            if number is not None:
                heapq.heappush(ended, (read.at, number))
                self._note_age(history, read, number)

    def _wrong(
        self, history: History, read: Read, number: int | None, seen: int, told: int, aged: int
    ) -> str | None:
        if number is None:
            return f"and was not deleted since {seen} was seen, {told} told, {aged} too old to be missed"
        if number >= len(history.begun) or history.begun[number] >= read.at:
            return "which nobody had committed"
        if number < seen:
            return f"though {seen} had been seen"
        if number < told:
            return f"though {told} had been told"
        if number < aged:
            return f"though {aged} was committed longer ago than {read.way} rows may be old"
        return None

    def _note_age(self, history: History, read: Read, number: int) -> None:
        """For how long what was read had been replaced."""
        if read.way != "stale":
            until = history.done[number + 1] if number + 1 < len(history.done) else math.inf
            self.replaced.append(max(0.0, read.began - until))

    def _judge_end(self) -> None:
        if not self.end["is_settled"]:
            self.complaints.append("What is read has not come to be what is there, or claims are left.")
        there, scheduled = set(self.end["there"]), set(self.end["scheduled"])
        if extra := scheduled - there | scheduled - plan.DELAYS.keys():
            self.complaints.append(f"The rows {sorted(extra)} are on the schedule, and should not be.")
        if lost := self._must_be_scheduled() & there - scheduled:
            self.complaints.append(f"The rows {sorted(lost)} are no longer on the schedule.")

    def _must_be_scheduled(self) -> set[int]:
        """Those that somebody put there when their last deletion was surely undone; or that were never deleted."""
        latest = defaultdict[int, float](float)
        for note in self._notes["scheduled"]:
            latest[note["row"]] = max(latest[note["row"]], note["began"])
        found = set()
        for row in plan.DELAYS:
            history = self.histories[row]
            deletions = [number for number, is_one in enumerate(history.is_deletion) if is_one]
            created = deletions[-1] + 1 if deletions else 0
            if created < len(history.done) and history.done[created] <= latest[row]:
                found.add(row)
        return found

    def figures(self) -> list[tuple[str, str]]:
        reads = sum(map(len, self.reads.values()))
        ages = sorted(self.replaced)
        refusals = Counter(note["error"] for note in self._notes["refused"])
        return [
            ("rows read, in calls", f"{reads:,}, {len(self._notes['read']):,}"),
            ("writes, deletions", f"{len(self.end['changes']):,}, {self._deletions():,}"),
            ("invalidations that returned", f"{len(self._notes['invalidated']):,}"),
            ("refused", str(dict(refusals))),
            ("replaced rows read", f"{sum(age > 0 for age in ages):,}"),
            ("replaced for: p99, at most", f"{quantile(ages, 0.99):.3f} s, {ages[-1]:.3f} s"),
        ]

    def _deletions(self) -> int:
        return sum(sum(history.is_deletion) for history in self.histories.values())


def oldest(row: int, way: str) -> float:
    """Seconds for which a row may have been replaced when it is read that way."""
    if way == "stale":
        return math.inf
    if way == "young":
        return plan.MAX_AGE
    return plan.DELAYS[row] + LEASE if row in plan.DELAYS else DELAY


def quantile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))]
