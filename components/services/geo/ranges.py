"""
Ranges of addresses: columns of first and last addresses, sorted and apart, and of what lives in each.

Both ends are kept, so an address between two ranges belongs to none of them; the book keeps the first only, and an
address that nobody has gets the city before it. Columns are buffers, which numpy can take as they are: 32 bits for an
address of IPv4 or a place, 16 bytes in the order of the network for one of IPv6.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TypeAlias

#: Bytes of an address of IPv6.
WIDE = 16

#: A column of 32 bits: an array to write, a memoryview to read.
Cells: TypeAlias = "array[int] | memoryview[int]"


class Wide:
    """A column of addresses of IPv6, as numbers."""

    def __init__(self, cells: bytearray | memoryview) -> None:
        self.cells = cells

    def __len__(self) -> int:
        return len(self.cells) // WIDE

    def __getitem__(self, at: int) -> int:
        return int.from_bytes(self.cells[at * WIDE : at * WIDE + WIDE], "big")


class WideArray(Wide):
    """One that grows."""

    cells: bytearray

    def __init__(self) -> None:
        super().__init__(bytearray())

    def append(self, number: int) -> None:
        self.cells += number.to_bytes(WIDE, "big")

    def pop(self) -> int:
        last = self[len(self) - 1]
        del self.cells[-WIDE:]
        return last


class Ipv4Ranges:
    """Those of IPv4. *starts*, *ends* and *places* are columns of 32 bits."""

    def __init__(self, starts: Cells, ends: Cells, places: Cells) -> None:
        self.starts, self.ends, self.places = starts, ends, places

    def __len__(self) -> int:
        return len(self.places)

    def find(self, number: int) -> int:
        """The place of an address; 0 if it lies in no range."""
        at = bisect_right(self.starts, number) - 1
        return self.places[at] if at >= 0 and number <= self.ends[at] else 0


class Ipv6Ranges:
    """Those of IPv6. *starts* and *ends* are columns of 16 bytes, *places* is one of 32 bits."""

    def __init__(self, starts: memoryview, ends: memoryview, places: Cells) -> None:
        self.starts, self.ends, self.places = starts, ends, places
        self._starts, self._ends = Wide(starts), Wide(ends)

    def __len__(self) -> int:
        return len(self.places)

    def find(self, number: int) -> int:
        """The place of an address; 0 if it lies in no range."""
        at = bisect_right(self._starts, number) - 1
        return self.places[at] if at >= 0 and number <= self._ends[at] else 0
