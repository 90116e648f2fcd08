"""
A block of lines as columns: what kernels give, and what callbacks of one's own are given.

Each line that can be read has an entry in each column, in the order of the block; those that cannot be read are
told apart from them, each with its reason. So all lines of the block are in one of the two, and none is dropped in
silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines.addresses import remembered

Offsets: TypeAlias = NDArray[np.int64]

READ = 0  # what stands in place of a reason where a line could be read
READ_IPV6 = 254
MAYBE_IPV6 = 255  # and where a fast kernel has left the address to Python


class Reason(IntEnum):
    """Why a line was not counted: the first that applies."""

    #: Nothing stands in it.
    EMPTY = 1
    #: It is no line of this format: a field is missing.
    FORMAT = 2
    #: What stands where the address should is none.
    ADDRESS = 3
    #: What stands where the time should does not begin with a day of the years 1 to 9999.
    DATE = 4
    #: Its day is before the first, or after the last, that are counted.
    LATE = 5
    FUTURE = 6


@dataclass(frozen=True)
class Columns:
    """Offsets are those of bytes of *data*, the block. An end is that of the line's text, before \\n or \\r\\n."""

    data: bytes
    starts: Offsets
    ends: Offsets
    #: Where that begins which follows the time: how the format has it.
    rests: Offsets
    #: Days since 1 January of the year 1, which is 1: date.fromordinal() makes dates of them.
    days: NDArray[np.int32]
    #: IPv4 addresses. Lines of IPv6 ones have 0 here.
    addresses: NDArray[np.uint32]
    #: Which lines have an IPv6 address, and these addresses: 16 bytes each, big endian.
    ipv6_lines: Offsets
    ipv6: NDArray[np.void]
    #: Lines that could not be read.
    rejected_starts: Offsets
    rejected_ends: Offsets
    #: A Reason each.
    reasons: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, line: int) -> bytes:
        """One that could be read, without its end."""
        return self.data[self.starts[line] : self.ends[line]]

    def between(self, first: int, last: int) -> Columns:
        """With lines of these days only, both included; the others are rejected."""
        is_late, is_future = self.days < first, self.days > last
        is_good = ~(is_late | is_future)
        if is_good.all():
            return self
        bad = np.flatnonzero(~is_good)
        starts = np.concatenate((self.rejected_starts, self.starts[bad]))
        order = np.argsort(starts)
        why = np.where(is_late[bad], Reason.LATE, Reason.FUTURE).astype(np.uint8)
        has_ipv6 = is_good[self.ipv6_lines]
        return Columns(
            data=self.data,
            starts=self.starts[is_good],
            ends=self.ends[is_good],
            rests=self.rests[is_good],
            days=self.days[is_good],
            addresses=self.addresses[is_good],
            ipv6_lines=(np.cumsum(is_good) - 1)[self.ipv6_lines[has_ipv6]],
            ipv6=self.ipv6[has_ipv6],
            rejected_starts=starts[order],
            rejected_ends=np.concatenate((self.rejected_ends, self.ends[bad]))[order],
            reasons=np.concatenate((self.reasons, why))[order],
        )


@dataclass(frozen=True)
class Raw:
    """What kernels fill in: an entry for each line; *reasons* has a Reason, READ, READ_IPV6 or MAYBE_IPV6 for it."""

    starts: Offsets
    ends: Offsets
    rests: Offsets
    days: NDArray[np.int32]
    #: The bits of addresses, signed since machine code is simpler then. IPv4 is in *low*.
    high: NDArray[np.int64]
    low: NDArray[np.int64]
    reasons: NDArray[np.uint8]

    @classmethod
    def empty(cls, lines: int) -> Raw:
        """Room for so many lines."""
        starts, ends, rests, high, low = (np.empty(lines, np.int64) for _ in range(5))
        return cls(starts, ends, rests, np.empty(lines, np.int32), high, low, np.empty(lines, np.uint8))

    def columns(self, block: bytes) -> Columns:
        """Read what was left to Python, and set apart the lines that could not be read."""
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
            starts=self.starts[good],
            ends=self.ends[good],
            rests=self.rests[good],
            days=self.days[good],
            addresses=addresses,
            ipv6_lines=ipv6_lines,
            ipv6=np.frombuffer(halves.astype(">i8").tobytes(), "V16"),
            rejected_starts=self.starts[bad],
            rejected_ends=self.ends[bad],
            reasons=self.reasons[bad],
        )

    def _read(self, block: bytes, line: int) -> None:
        start = int(self.starts[line])
        found = remembered(block[start : block.index(b" ", start)])
        if found is None or not self.days[line]:
            self.reasons[line] = Reason.ADDRESS if found is None else Reason.DATE
            return
        version, address = found
        self.reasons[line] = READ if version == 4 else READ_IPV6
        self.high.view(np.uint64)[line], self.low.view(np.uint64)[line] = divmod(address, 1 << 64)
