"""
Blocks of lines read into columns, and counted by day and place until somebody takes the counts to flush them.

A line is read, or rejected with a reason. Both are counted, and some lines of each reason are kept to be shown, so no
line is dropped in silence.

Nothing is stored here. What was counted since the last take() is lost with the process, and another process counts
the blocks again: so counts and the blocks that they come from are flushed in one step. Readers and countings are for
one thread.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import date

from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import Columns, Reason
from components.services.logs.lines.formats import Format
from components.services.logs.lines.kernels import Kernel, choose_kernel
from components.services.logs.lines.place_table import PlaceTable

_SAMPLES = 5  # rejected lines of each reason that are kept until the next take()
_SAMPLE = 200  # bytes kept of one


@dataclass(frozen=True)
class Rejected:
    """A line that was not counted."""

    reason: Reason
    #: The name that the caller of read() gave the block.
    source: str
    #: Its number, from 1 on, and its first byte; in the source, if read() was given where the block begins there.
    line: int
    offset: int
    #: The first 200 bytes.
    head: bytes


@dataclass(frozen=True)
class Tally:
    """How many lines there were, and which of them were rejected."""

    lines: int
    rejected: dict[Reason, int]
    samples: tuple[Rejected, ...]


class LineReader:
    """Reads lines of one format by one kernel."""

    def __init__(self, form: Format, *, kernel: str | Kernel | None = None) -> None:
        self.form = form
        self.kernel = choose_kernel(kernel) if isinstance(kernel, str | None) else kernel
        #: The first and the last day that count; lines of other days are rejected.
        self.days = (date.min, date.max)
        self._begin()

    def read(self, block: bytes, *, source: str = "", offset: int = 0, line: int = 1) -> Columns:
        """
        Return the lines of *block* as columns. The last line need not have an end. The block begins at the byte
        *offset* of *source*, with the line of this number.
        """
        first, last = self.days
        columns = self.kernel.columns(block, self.form).between(first.toordinal(), last.toordinal())
        self._lines += len(columns) + len(columns.reasons)
        if len(columns.reasons):
            self._reject(columns, source, offset, line)
        return columns

    def take(self) -> Tally:
        """Return the tally of the lines since the last take(), and begin again."""
        taken = Tally(self._lines, dict(self._rejected), tuple(self._samples))
        self._begin()
        return taken

    def _begin(self) -> None:
        self._lines = 0
        self._rejected: Counter[Reason] = Counter()
        self._samples: list[Rejected] = []

    def _reject(self, columns: Columns, source: str, offset: int, line: int) -> None:
        for reason in Reason:
            found = (columns.reasons == reason).nonzero()[0]
            wanted = max(0, _SAMPLES - self._rejected[reason])
            for each in found[:wanted].tolist():
                start, end = int(columns.rejected_starts[each]), int(columns.rejected_ends[each])
                number = line + columns.data.count(b"\n", 0, start)
                head = columns.data[start : min(end, start + _SAMPLE)]
                self._samples.append(Rejected(reason, source, number, offset + start, head))
            if len(found):
                self._rejected[reason] += len(found)


@dataclass(frozen=True)
class Counts(Tally):
    """What was counted, by day and place: lines == sum(counts.values()) + sum(rejected.values())."""

    counts: dict[tuple[date, int], int]

    @property
    def first_day(self) -> date | None:
        return min((day for day, _place in self.counts), default=None)

    @property
    def last_day(self) -> date | None:
        return max((day for day, _place in self.counts), default=None)


class Counting:
    """Counts lines of one format by day and place, with one kernel."""

    def __init__(self, table: PlaceTable, form: Format, *, kernel: str | Kernel | None = None) -> None:
        self.table = table
        self.reader = LineReader(form, kernel=kernel)
        self._cells = Cells(table.size)

    def add(self, block: bytes, *, source: str = "", offset: int = 0, line: int = 1) -> Columns:
        """Count the lines of *block*, and return them as columns. LineReader.read() has the arguments."""
        columns = self.reader.read(block, source=source, offset=offset, line=line)
        kernel = self.reader.kernel
        kernel.count(self._cells, columns.days, kernel.places(columns, self.table))
        return columns

    def take(self) -> Counts:
        """Return what was counted since the last take(), and begin again."""
        counts = {(date.fromordinal(day), place): count for day, place, count in self._cells}
        self._cells = Cells(self.table.size)
        tally = self.reader.take()
        return Counts(tally.lines, tally.rejected, tally.samples, counts)
