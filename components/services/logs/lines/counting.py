"""
Blocks counted by day and place, until somebody takes the counts to flush them.

Nothing is stored here: what was counted since the last take() is lost with the process, and the blocks are then
counted by another, which is why counts and the blocks they come from are flushed in one step. A Counting is for one
thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import Columns
from components.services.logs.lines.formats import Format
from components.services.logs.lines.kernels import Kernel
from components.services.logs.lines.places import PlaceTable
from components.services.logs.lines.reading import LineReader, Tally


@dataclass(frozen=True)
class Counts(Tally):
    """What was counted: lines == sum(counts.values()) + sum(rejected.values())."""

    counts: dict[tuple[date, int], int]

    @property
    def first_day(self) -> date | None:
        return min((day for day, _place in self.counts), default=None)

    @property
    def last_day(self) -> date | None:
        return max((day for day, _place in self.counts), default=None)


class Counting:
    """Counts by day and place, made by one kernel out of lines of one format."""

    def __init__(self, table: PlaceTable, form: Format, *, kernel: str | Kernel | None = None) -> None:
        self.table = table
        self.reader = LineReader(form, kernel=kernel)
        self._cells = Cells(table.size)

    def add(self, block: bytes, *, source: str = "", offset: int = 0, line: int = 1) -> Columns:
        """Count the lines of *block*, which begins there in *source*. Gives them back as columns."""
        columns = self.reader.read(block, source=source, offset=offset, line=line)
        kernel = self.reader.kernel
        kernel.count(self._cells, columns.days, kernel.places(columns, self.table))
        return columns

    def take(self) -> Counts:
        """What was counted since the last time; it begins anew."""
        counts = {(date.fromordinal(day), place): count for day, place, count in self._cells}
        self._cells = Cells(self.table.size)
        tally = self.reader.take()
        return Counts(tally.lines, tally.rejected, tally.samples, counts)
