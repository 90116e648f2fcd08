"""
Blocks counted by day and place, until somebody takes the counts to flush them.

Nothing is stored here: what was counted since the last take() is lost with the process, and the blocks are then
counted by another, which is why counts and the blocks they come from are flushed in one step. A Counting is for one
thread.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date

from components.services.lines.cells import Cells
from components.services.lines.columns import Columns, Reason
from components.services.lines.formats import Format
from components.services.lines.kernels import Kernel, choose_kernel
from components.services.lines.places import PlaceTable

_SAMPLES = 5  # rejected lines of each reason that are kept until the next take()
_SAMPLE = 200  # bytes kept of one


@dataclass(frozen=True)
class Rejected:
    """A line that was not counted."""

    reason: Reason
    #: What the caller of add() has named the block.
    source: str
    #: The line's first byte: in the source, if add() was told where the block begins in it.
    offset: int
    #: The first 200 bytes.
    head: bytes


@dataclass(frozen=True)
class Counts:
    """What was counted: lines == sum(counts.values()) + sum(rejected.values())."""

    lines: int
    counts: dict[tuple[date, int], int]
    rejected: dict[Reason, int]
    samples: tuple[Rejected, ...]

    @property
    def first_day(self) -> date | None:
        return min((day for day, _place in self.counts), default=None)

    @property
    def last_day(self) -> date | None:
        return max((day for day, _place in self.counts), default=None)


class Counting:
    """Counts by day and place, made by one kernel out of lines of one format."""

    def __init__(self, table: PlaceTable, form: Format, *, kernel: str | Kernel | None = None) -> None:
        self.table, self.form = table, form
        self.kernel = choose_kernel(kernel) if isinstance(kernel, str | None) else kernel
        self._begin()

    def add(self, block: bytes, *, source: str = "", offset: int = 0) -> Columns:
        """Count the lines of *block*, which begins there in *source*. Gives them back as columns."""
        columns = self.kernel.columns(block, self.form)
        self.kernel.count(self._cells, columns.days, self.kernel.places(columns, self.table))
        self._lines += len(columns) + len(columns.reasons)
        if len(columns.reasons):
            self._reject(block, columns, source, offset)
        return columns

    def take(self) -> Counts:
        """What was counted since the last time; it begins anew."""
        counts = {(date.fromordinal(day), place): count for day, place, count in self._cells}
        taken = Counts(self._lines, counts, dict(self._rejected), tuple(self._samples))
        self._begin()
        return taken

    def _begin(self) -> None:
        self._cells = Cells(self.table.size)
        self._lines = 0
        self._rejected: Counter[Reason] = Counter()
        self._samples: list[Rejected] = []

    def _reject(self, block: bytes, columns: Columns, source: str, offset: int) -> None:
        for reason in Reason:
            lines = (columns.reasons == reason).nonzero()[0]
            wanted = max(0, _SAMPLES - self._rejected[reason])
            for line in lines[:wanted].tolist():
                start, end = int(columns.rejected_starts[line]), int(columns.rejected_ends[line])
                head = block[start : min(end, start + _SAMPLE)]
                self._samples.append(Rejected(reason, source, offset + start, head))
            if len(lines):
                self._rejected[reason] += len(lines)
