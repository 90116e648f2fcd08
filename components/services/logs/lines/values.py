"""
The paths, referrers and agents of a block of lines: where they are, and numbers for those that are different.

A kernel finds them, and gives each value the number under which it was first seen, until the values are forgotten. So
lines are counted by numbers, and each value is looked at once in a flush.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines.columns import Columns, Offsets
from components.services.logs.lines.formats import Format, Parts


@dataclass(frozen=True)
class Spans:
    """Where in *data* the path, the referrer and the agent of each line are: a row for each of the three."""

    data: bytes
    starts: Offsets
    ends: Offsets


class Values(Protocol):
    """Different values, with a number for each from 0 on."""

    def __len__(self) -> int: ...

    def numbers(self, data: bytes, starts: Offsets, ends: Offsets) -> NDArray[np.int64]:
        """Return the number of each value, and note those that are new."""

    def texts(self) -> list[bytes]:
        """Return the values in the order of their numbers."""


class PlainValues:
    """Values in a dict."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, data: bytes, starts: Offsets, ends: Offsets) -> NDArray[np.int64]:
        known = self._numbers
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        return np.array([known.setdefault(data[start:end], len(known)) for start, end in spans], np.int64)

    def texts(self) -> list[bytes]:
        return list(self._numbers)


def plain_spans(columns: Columns, form: Format) -> Spans:
    """Find the values as the format defines them, line by line. They are copied, since JSON escapes some."""
    read: Any = form
    found = [read.parts(columns.text(line)) for line in range(len(columns))]
    rows = [[parts[number] for parts in found] for number in range(len(Parts._fields))]
    lengths = np.array([[len(value) for value in row] for row in rows], np.int64)
    ends = np.cumsum(lengths).reshape(lengths.shape)
    return Spans(b"".join(value for row in rows for value in row), ends - lengths, ends)
