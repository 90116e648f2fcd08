"""
PlaceTable: the places of many addresses at once. It is made once from sorted ranges, and then only read.

For IPv4 the first 24 bits lead straight to the place. If a /24 has several places, its entry is SPLIT, and the
address is searched among the pieces; an index tells where the pieces of its first 16 bits begin. So most lookups read
memory once, and the size is bounded: 32 MB for up to 65,534 places, 64 MB above, and 8 bytes for each piece. (The
usual second tables, 256 entries for each split /24, grow to hundreds of MB with cities.) IPv6 is searched among its
ranges.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from components.exceptions import InvalidValue
from components.services.logs.lines.columns import Columns

UNKNOWN = 0  # the place of an address that is not in any range
_END = 1 << 32  # of IPv4
_SLOT = 256  # addresses of an entry
_SMALL = 0xFFFF  # the largest number of places in 16 bits: one number is SPLIT

Places: TypeAlias = NDArray[np.uint32]


class SortedRanges(Protocol):
    """Ranges, or anything else with these columns, such as the ranges of a GeoTable."""

    @property
    def starts(self) -> Any: ...
    @property
    def ends(self) -> Any: ...
    @property
    def places(self) -> Any: ...


@dataclass(frozen=True)
class Ranges:
    """
    Ranges of addresses, sorted and without overlaps; both ends are included. The columns are buffers of the same
    length, which are not copied. IPv4: 32-bit numbers in the machine's byte order. IPv6: 16 bytes each, big endian.
    Places: 32-bit numbers.
    """

    starts: Any = b""
    ends: Any = b""
    places: Any = b""


class PlaceTable:
    """
    Addresses and their places, which are numbers from 1 on; 0 is unknown. Raises InvalidValue. *groups* has a number
    for each place, such as the number of its country, by which the place is then replaced. A table takes a tenth of a
    second to make. Threads can share it.
    """

    def __init__(self, ipv4: SortedRanges, ipv6: SortedRanges | None = None, *, groups: Any = None) -> None:
        ipv6 = Ranges() if ipv6 is None else ipv6
        self.ipv4_starts, self.ipv4_ends, self.ipv4_places = _columns(ipv4, "IPv4", np.dtype(np.uint32))
        self.ipv6_starts, self.ipv6_ends, self.ipv6_places = _columns(ipv6, "IPv6", np.dtype("S16"))
        if groups is not None:
            groups = _array(groups, np.dtype(np.uint32), "Groups of places")
            self.ipv4_places, self.ipv6_places = (
                _grouped(places, groups) for places in (self.ipv4_places, self.ipv6_places)
            )
        #: One more than the largest number of a place.
        self.size = 1 + max(int(places.max(initial=0)) for places in (self.ipv4_places, self.ipv6_places))
        if self.size > 1 << 31:
            raise InvalidValue(f"The largest place is {self.size - 1:,}; places are numbers below 2^31.")
        # All IPv4 addresses in pieces: where each piece begins, and its place. It ends where the next one begins.
        bounds, places = self._pieces()
        # Which piece has the first address of each /16; the last piece at the end.
        every = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
        holds = np.searchsorted(bounds, every, "right") - 1
        buckets: Places = np.append(holds, len(bounds) - 1).astype(np.uint32)
        # The place of each /24, or *split*, which is the largest number.
        slots = self._slots(bounds, places)
        split = int(np.iinfo(slots.dtype).max)
        #: What the compiled kernel searches IPv4 addresses in.
        self.index = (slots, split, buckets, bounds, places)

    def _pieces(self) -> tuple[Places, Places]:
        bounds = np.zeros(2 * len(self.ipv4_starts) + 1, np.uint64)
        places = np.zeros(len(bounds), np.uint32)
        bounds[1::2], bounds[2::2] = self.ipv4_starts, self.ipv4_ends
        bounds[2::2] += np.uint64(1)
        places[1::2] = self.ipv4_places
        is_some = np.append(bounds[:-1] < bounds[1:], bounds[-1] < _END)
        bounds, places = bounds[is_some], places[is_some]
        is_other = np.append(True, places[1:] != places[:-1])
        return bounds[is_other].astype(np.uint32), places[is_other]

    def _slots(self, bounds: Places, places: Places) -> NDArray[Any]:
        kind: type[np.unsignedinteger[Any]] = np.uint16 if self.size <= _SMALL else np.uint32
        firsts = (bounds.astype(np.int64) + _SLOT - 1) // _SLOT  # the first slot that begins in a piece
        slots = np.repeat(places.astype(kind), np.diff(firsts, append=_END // _SLOT))
        slots[bounds[bounds % _SLOT != 0] // _SLOT] = np.iinfo(kind).max
        return slots

    def ipv6_of(self, columns: Columns) -> Places:
        """Return the places of the IPv6 addresses among *columns*."""
        sought = columns.ipv6.view("S16")
        if not len(self.ipv6_starts):
            return np.full(len(sought), UNKNOWN, np.uint32)
        at = np.searchsorted(self.ipv6_starts, sought, "right") - 1
        is_in = (at >= 0) & (sought <= self.ipv6_ends[at])
        return np.where(is_in, self.ipv6_places[at], np.uint32(UNKNOWN))


def _grouped(places: Places, groups: Places) -> Places:
    if len(places) and places.max() >= len(groups):
        raise InvalidValue(f"There are groups for {len(groups):,} places; place {places.max():,} has none.")
    return groups[places]


def _columns(
    ranges: SortedRanges, what: str, kind: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any], Places]:
    starts, ends = (_array(each, kind, f"{what} ranges") for each in (ranges.starts, ranges.ends))
    places = _array(ranges.places, np.dtype(np.uint32), f"{what} ranges")
    if not len(starts) == len(ends) == len(places):
        raise InvalidValue(
            f"There are {len(starts):,} starts, {len(ends):,} ends and {len(places):,} places of {what} ranges; "
            "there must be as many of each."
        )
    for wrong, say in (
        (starts > ends, "ends before it starts"),
        (starts[1:] <= ends[:-1], "and the next one overlap, or are not sorted"),
    ):
        if wrong.any():
            raise InvalidValue(f"The {what} range number {int(wrong.argmax()) + 1:,} {say}.")
    return starts, ends, places


def _array(buffer: Any, kind: np.dtype[Any], what: str) -> NDArray[Any]:
    try:
        return np.frombuffer(buffer, kind)
    except ValueError as error:
        raise InvalidValue(
            f"{what}: a column does not have {kind.itemsize} bytes for each entry: {error}."
        ) from error
