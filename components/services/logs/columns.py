"""
A block of lines as columns: what kernels give, and what callbacks of one's own are given.

Each line that can be read has an entry in each column, in the order of the block; those that cannot be read are
told apart from them, each with its reason. So all lines of the block are in one of the two, and none is dropped in
silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from components.services.logs.addresses import remembered

Offsets: TypeAlias = NDArray[np.int64]

READ = 0  # what stands in place of a reason where a line could be read
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


@dataclass(frozen=True)
class Columns:
    """Offsets are those of bytes of the block. An end is that of the line's text, before \\n or \\r\\n."""

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


@dataclass(frozen=True)
class Raw:
    """What kernels fill in: an entry for each line, readable or not, and a Reason, READ or MAYBE_IPV6 for each."""

    starts: Offsets
    ends: Offsets
    rests: Offsets
    days: NDArray[np.int32]
    addresses: NDArray[np.uint32]
    reasons: NDArray[np.uint8]

    @classmethod
    def empty(cls, lines: int) -> Raw:
        """Room for so many lines."""
        starts, ends, rests = (np.empty(lines, np.int64) for _ in range(3))
        return cls(
            starts,
            ends,
            rests,
            np.empty(lines, np.int32),
            np.empty(lines, np.uint32),
            np.empty(lines, np.uint8),
        )

    def columns(self, block: bytes) -> Columns:
        """Read what was left to Python, and set apart the lines that could not be read."""
        if not self.reasons.any():
            return self._chosen(slice(None), (), ())
        ipv6: dict[int, bytes] = {}
        for line in np.flatnonzero(self.reasons == MAYBE_IPV6).tolist():
            self._read(block, line, ipv6)
        good = np.flatnonzero(self.reasons == READ)
        at = np.searchsorted(good, [line for line in ipv6 if self.reasons[line] == READ])
        return self._chosen(good, at, [ipv6[line] for line in good[at].tolist()])

    def _read(self, block: bytes, line: int, ipv6: dict[int, bytes]) -> None:
        start = int(self.starts[line])
        found = remembered(block[start : block.index(b" ", start)])
        if found is None:
            self.reasons[line] = Reason.ADDRESS
            return
        version, address = found
        self.reasons[line] = READ if self.days[line] else Reason.DATE
        self.addresses[line] = address if version == 4 else 0
        if version == 6:
            ipv6[line] = address.to_bytes(16, "big")

    def _chosen(
        self, good: slice | Offsets, ipv6_lines: Sequence[int] | Offsets, ipv6: Sequence[bytes]
    ) -> Columns:
        bad = np.flatnonzero(self.reasons) if isinstance(good, np.ndarray) else slice(0)
        return Columns(
            starts=self.starts[good],
            ends=self.ends[good],
            rests=self.rests[good],
            days=self.days[good],
            addresses=self.addresses[good],
            ipv6_lines=np.asarray(ipv6_lines, np.int64),
            ipv6=np.frombuffer(b"".join(ipv6), "V16"),
            rejected_starts=self.starts[bad],
            rejected_ends=self.ends[bad],
            reasons=self.reasons[bad],
        )
