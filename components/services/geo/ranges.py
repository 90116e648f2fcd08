"""
Ranges of addresses: sorted columns of first and last addresses, without overlaps, and of their places.

Both ends are stored, so an address between two ranges belongs to none of them; the book stores only the first, and an
unused address gets the city before it. Columns are buffers that numpy can use as they are: 32 bits for an IPv4
address or a place, 16 bytes in network order for an IPv6 address.
"""

from array import array
from bisect import bisect_right
from typing import TypeAlias

#: Bytes of an address of IPv6.
WIDE = 16

#: A column of 32 bits: an array to write, a memoryview to read.
Cells: TypeAlias = "array[int] | memoryview[int]"


class Wide:
    """A column of IPv6 addresses, as numbers."""

    def __init__(self, cells: bytearray | memoryview) -> None:
        self.cells = cells

    def __len__(self) -> int:
        return len(self.cells) // WIDE

    def __getitem__(self, at: int) -> int:
        return int.from_bytes(self.cells[at * WIDE : at * WIDE + WIDE], "big")


class WideArray(Wide):
    """A column of IPv6 addresses that grows."""

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
    """Ranges of IPv4. *starts*, *ends* and *places* are columns of 32 bits."""

    def __init__(self, starts: Cells, ends: Cells, places: Cells) -> None:
        self.starts, self.ends, self.places = starts, ends, places

    def __len__(self) -> int:
        return len(self.places)

    def find(self, number: int) -> int:
        """Return the place of an address; 0 if it is not in any range."""
        at = bisect_right(self.starts, number) - 1
        return self.places[at] if at >= 0 and number <= self.ends[at] else 0


class Ipv6Ranges:
    """Ranges of IPv6. *starts* and *ends* are columns of 16 bytes, *places* is one of 32 bits."""

    def __init__(self, starts: memoryview, ends: memoryview, places: Cells) -> None:
        self.starts, self.ends, self.places = starts, ends, places
        self._starts, self._ends = Wide(starts), Wide(ends)

    def __len__(self) -> int:
        return len(self.places)

    def find(self, number: int) -> int:
        """Return the place of an address; 0 if it is not in any range."""
        at = bisect_right(self._starts, number) - 1
        return self.places[at] if at >= 0 and number <= self._ends[at] else 0
