"""
LineReader: blocks of lines made into columns, and what became of each line.

A line is read, or rejected with a reason; both are counted, and of each reason some are kept to be shown, so none is
dropped in silence. Nothing is stored here: see counting.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date

from components.services.logs.lines.columns import Columns, Reason
from components.services.logs.lines.formats import Format
from components.services.logs.lines.kernels import Kernel, choose_kernel

_SAMPLES = 5  # rejected lines of each reason that are kept until the next take()
_SAMPLE = 200  # bytes kept of one


@dataclass(frozen=True)
class Rejected:
    """A line that was not counted."""

    reason: Reason
    #: What the caller of read() has named the block.
    source: str
    #: Its number, from 1 on, and its first byte: in the source, if read() was told where the block begins in it.
    line: int
    offset: int
    #: The first 200 bytes.
    head: bytes


@dataclass(frozen=True)
class Tally:
    """How many lines there were, and which of them were not read."""

    lines: int
    rejected: dict[Reason, int]
    samples: tuple[Rejected, ...]


class LineReader:
    """Reads lines of one format by one kernel. For one thread."""

    def __init__(self, form: Format, *, kernel: str | Kernel | None = None) -> None:
        self.form = form
        self.kernel = choose_kernel(kernel) if isinstance(kernel, str | None) else kernel
        #: The first and the last day that count; lines of others are rejected.
        self.days = (date.min, date.max)
        self._begin()

    def read(self, block: bytes, *, source: str = "", offset: int = 0, line: int = 1) -> Columns:
        """The lines of *block*, which begins there in *source*. The last one need not have an end."""
        first, last = self.days
        columns = self.kernel.columns(block, self.form).between(first.toordinal(), last.toordinal())
        self._lines += len(columns) + len(columns.reasons)
        if len(columns.reasons):
            self._reject(columns, source, offset, line)
        return columns

    def take(self) -> Tally:
        """What became of the lines since the last time; it begins anew."""
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
