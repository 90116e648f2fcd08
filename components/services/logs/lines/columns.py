"""
A block of lines, which both kernels return alike and callbacks receive.

Each readable line has an entry in each column, in the order of the block. The other lines are stored separately, each
with its reason. Every line of the block is in one of the two, so none is lost silently. Iterating gives each line
as values of plain Python; to count millions of lines, use the columns, which are arrays of numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines.addresses import parse_address

Offsets: TypeAlias = NDArray[np.int64]

#: In place of a reason. READ: the line could be read. READ_IPV6: it could, and its address is IPv6. MAYBE_IPV6: the
#: compiled kernel has left its address to Python.
READ, READ_IPV6, MAYBE_IPV6 = 0, 254, 255
_OF_BOTH = ("starts", "ends", "rests", "days", "minutes", "statuses")


class Reason(IntEnum):
    """Why a line was not counted: the first reason that applies."""

    #: The line is empty.
    EMPTY = 1
    #: It is not of this format: a field is missing.
    FORMAT = 2
    #: The field of the address is not an address.
    ADDRESS = 3
    #: The field of the time does not begin with a day of the years 1 to 9999.
    DATE = 4
    #: Its day is before the first day that is counted, or after the last.
    LATE = 5
    FUTURE = 6


class Line(NamedTuple):
    """A line that could be read."""

    #: The whole line, without its end.
    text: bytes
    #: The part after the time, as the format defines it.
    rest: bytes
    address: IPv4Address | IPv6Address
    day: date
    #: The minute of the day; -1 if the line does not have it.
    minute: int
    #: The status of the answer to a request, 100 to 599; 0 if the line does not have it.
    status: int


@dataclass(frozen=True)
class Columns:
    """
    Lines of a block: each Line in turn, or columns with an entry for each. Offsets are in bytes of *data*, the block.
    A line ends before its \\n or \\r\\n.
    """

    data: bytes
    starts: Offsets
    ends: Offsets
    #: Where the part after the time begins, as the format defines it.
    rests: Offsets
    #: Days as numbers for date.fromordinal(): 1 January of the year 1 is 1.
    days: NDArray[np.int32]
    #: IPv4 addresses; 0 for lines with an IPv6 address.
    addresses: NDArray[np.uint32]
    #: The numbers of lines that have an IPv6 address, and these addresses: 16 bytes each, big endian.
    ipv6_lines: Offsets
    ipv6: NDArray[np.void]
    #: Lines that could not be read.
    rejected_starts: Offsets
    rejected_ends: Offsets
    #: The Reason of each.
    reasons: NDArray[np.uint8]
    #: The minute of the day; -1 for a line that does not have it.
    minutes: NDArray[np.int16]
    #: The status of the answer to a request, 100 to 599; 0 for a line that does not have it.
    statuses: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, line: int) -> bytes:
        """Return a line that could be read, without its end."""
        return self.data[self.starts[line] : self.ends[line]]

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines that could be read."""
        of_ipv6 = (IPv6Address(each.tobytes()) for each in self.ipv6)
        ipv6 = dict(zip(self.ipv6_lines.tolist(), of_ipv6, strict=True))
        columns = (self.starts, self.rests, self.ends, self.addresses, self.days, self.minutes, self.statuses)
        rows = zip(*(each.tolist() for each in columns), strict=True)
        for number, (start, rest, end, address, day, minute, status) in enumerate(rows):
            yield Line(
                text=self.data[start:end],
                rest=self.data[rest:end],
                address=ipv6.get(number) or IPv4Address(address),
                day=date.fromordinal(day),
                minute=minute,
                status=status,
            )

    def between(self, first: int, last: int) -> Columns:
        """Return the lines of the days from *first* to *last*; the others are rejected."""
        is_late, is_future = self.days < first, self.days > last
        is_good = ~(is_late | is_future)
        if is_good.all():
            return self
        bad = np.flatnonzero(~is_good)
        starts = np.concatenate((self.rejected_starts, self.starts[bad]))
        order = np.argsort(starts)
        why = np.where(is_late[bad], Reason.LATE, Reason.FUTURE).astype(np.uint8)
        has_ipv6 = is_good[self.ipv6_lines]
        return replace(
            self,
            **_of_lines(self, is_good),
            addresses=self.addresses[is_good],
            ipv6_lines=(np.cumsum(is_good) - 1)[self.ipv6_lines[has_ipv6]],
            ipv6=self.ipv6[has_ipv6],
            rejected_starts=starts[order],
            rejected_ends=np.concatenate((self.rejected_ends, self.ends[bad]))[order],
            reasons=np.concatenate((self.reasons, why))[order],
        )


def _of_lines(columns: Columns | Raw, lines: Any) -> dict[str, Any]:
    return {each: getattr(columns, each)[lines] for each in _OF_BOTH}


@dataclass(frozen=True)
class Raw:
    """An entry for each line, from the compiled kernel. *reasons* has a Reason, READ, READ_IPV6 or MAYBE_IPV6."""

    starts: Offsets
    ends: Offsets
    rests: Offsets
    days: NDArray[np.int32]
    #: The bits of addresses, signed because that makes machine code simpler. IPv4 is in *low*.
    high: NDArray[np.int64]
    low: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    minutes: NDArray[np.int16]
    statuses: NDArray[np.int16]

    @classmethod
    def empty(cls, lines: int) -> Raw:
        """Return columns with room for so many lines."""
        kinds = (*[np.int64] * 3, np.int32, np.int64, np.int64, np.uint8, np.int16, np.int16)
        return cls(*(np.empty(lines, kind) for kind in kinds))

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """Return all columns, in the order in which the parsers take them."""
        return [getattr(self, each.name) for each in fields(self)]

    def columns(self, block: bytes) -> Columns:
        """Read the addresses that were left to Python. Return the lines; those that cannot be read are kept apart."""
        for line in np.flatnonzero(self.reasons == MAYBE_IPV6).tolist():
            self._read(block, line)
        is_bad = (self.reasons != READ) & (self.reasons != READ_IPV6)
        bad = np.flatnonzero(is_bad)
        good = np.flatnonzero(~is_bad) if len(bad) else slice(None)  # a slice copies nothing
        ipv6_lines = np.flatnonzero(self.reasons[good] == READ_IPV6)
        addresses = self.low[good].astype(np.uint32)
        addresses[ipv6_lines] = 0
        halves = np.stack((self.high[good][ipv6_lines], self.low[good][ipv6_lines]), axis=1)
        return Columns(
            data=block,
            **_of_lines(self, good),
            addresses=addresses,
            ipv6_lines=ipv6_lines,
            ipv6=np.frombuffer(halves.astype(">i8").tobytes(), "V16"),
            rejected_starts=self.starts[bad],
            rejected_ends=self.ends[bad],
            reasons=self.reasons[bad],
        )

    def _read(self, block: bytes, line: int) -> None:
        start = int(self.starts[line])
        found = parse_address(block[start : block.index(b" ", start)])
        if found is None or not self.days[line]:
            self.reasons[line] = Reason.ADDRESS if found is None else Reason.DATE
            return
        version, address = found
        self.reasons[line] = READ if version == 4 else READ_IPV6
        self.high.view(np.uint64)[line], self.low.view(np.uint64)[line] = divmod(address, 1 << 64)


class Callback(Protocol):
    """
    Counts blocks of lines, and is asked now and then for its sums. PlaceCounter is one.

    It is created without arguments. If a chunk is lost because its lease was over, others count it again; the
    callback and its sums are then thrown away, and a new one is created. So it must keep its sums in itself and do
    nothing else: anything else would be done twice. If it has an attribute *is_full* that is true, its sums are
    flushed after the chunk.
    """

    def block(self, columns: Columns) -> None:
        """Count these lines. Each kernel passes the same."""

    def flush(self) -> Mapping[str, Mapping[str, int]]:
        """Return the sums since the last flush, to be added to tables: table -> member -> count. Begin again."""
