"""The kernel of machine code (numba): one loop reads lines, one finds their places, one counts them."""

from __future__ import annotations

import secrets
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import Columns, Offsets, Raw
from components.services.logs.lines.formats import Book, Combined, Format
from components.services.logs.lines.kernels.naive import Naive
from components.services.logs.lines.kernels.scanning import (
    compiled,
    fill_slots,
    find_parts,
    number_values,
    parse_book,
    parse_combined,
)
from components.services.logs.lines.place_table import Places, PlaceTable
from components.services.logs.lines.values import Spans, plain_spans

_PARSERS = {Book: parse_book, Combined: parse_combined}


class Compiled:
    """The kernel "numba"."""

    name = "numba"

    def columns(self, block: bytes, form: Format) -> Columns:
        parse = _PARSERS.get(type(form))
        if parse is None:
            return Naive().columns(block, form)
        ended = block if block.endswith(b"\n") or not block else block + b"\n"
        raw = Raw.empty(ended.count(b"\n"))
        parse(np.frombuffer(ended, np.uint8), *raw.arrays)
        return raw.columns(block)

    def places(self, columns: Columns, table: PlaceTable) -> Places:
        places = np.empty(len(columns), np.uint32)
        _seek(columns.addresses, *table.index, places)
        if len(columns.ipv6_lines):
            places[columns.ipv6_lines] = table.ipv6_of(columns)
        return places

    def count(self, cells: Cells, days: NDArray[np.int32], places: Places) -> None:
        left = np.empty(len(days), np.int64)
        if number := _count(days, places, cells.days, cells.counts, left):
            cells.add_each(days[left[:number]], places[left[:number]])

    def spans(self, columns: Columns, form: Format) -> Spans:
        if not len(columns) or type(form) is not Combined:
            return plain_spans(columns, form)
        starts, ends = (np.empty((3, len(columns)), np.int64) for _ in range(2))
        find_parts(np.frombuffer(columns.data, np.uint8), columns.rests, columns.ends, starts, ends)
        return Spans(columns.data, starts, ends)

    def values(self) -> CompiledValues:
        return CompiledValues()


class CompiledValues:
    """
    Values one after the other in one buffer, found by a hash: a slot has the number of a value, or -1. The hash
    begins with a random number, so that nobody can choose values that meet in one slot. A value is compared byte by
    byte: two of the same hash are two values.
    """

    def __init__(self) -> None:
        self._seed = np.uint64(secrets.randbits(64))
        self._slots = np.full(1 << 12, -1, np.int32)
        self._hashes = np.empty(0, np.uint64)
        #: Where each value ends in the buffer; it begins where the one before ends.
        self._ends, self._bytes = np.zeros(1, np.int64), np.empty(0, np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def numbers(self, data: bytes, starts: Offsets, ends: Offsets) -> NDArray[np.int64]:
        self._make_room(len(starts), int((ends - starts).sum()))
        found = np.empty(len(starts), np.int64)
        known = (self._seed, self._slots, self._hashes, self._ends, self._bytes, self._count)
        arguments: Any = (np.frombuffer(data, np.uint8), starts, ends, *known, found)
        self._count = number_values(*arguments)
        return found

    def texts(self) -> list[bytes]:
        ends = self._ends[: self._count + 1].tolist()
        every = self._bytes[: ends[-1]].tobytes()
        return [every[start:end] for start, end in pairwise(ends)]

    def _make_room(self, values: int, size: int) -> None:
        """Make room for so many values of so many bytes together, all of which may be new."""
        most, used = self._count + values, int(self._ends[self._count])
        if most > len(self._hashes):
            self._hashes = _grown(self._hashes, self._count, 2 * most)
            self._ends = _grown(self._ends, self._count + 1, 2 * most + 1)
        if used + size > len(self._bytes):
            self._bytes = _grown(self._bytes, used, 2 * (used + size))
        if 2 * most > len(self._slots):
            self._slots = np.full(1 << (2 * most).bit_length(), -1, np.int32)
            fill_slots(self._slots, self._hashes, self._count)


def _grown(array: NDArray[Any], used: int, size: int) -> NDArray[Any]:
    """Return a longer array with the *used* beginning of *array*. Its end is not touched: most of it stays unused."""
    longer = np.empty(size, array.dtype)
    longer[:used] = array[:used]
    return longer


@compiled
def _seek(
    addresses: NDArray[np.uint32],
    slots: NDArray[Any],
    split: int,
    buckets: Places,
    bounds: Places,
    bound_places: Places,
    places: Places,
) -> None:
    for line in range(len(addresses)):
        address = addresses[line]
        place = slots[address >> 8]
        if place != split:
            places[line] = place
            continue
        low, high = np.int64(buckets[address >> 16]), np.int64(buckets[(address >> 16) + 1])
        while low < high:  # the last piece that begins at the address or before it
            middle = (low + high + 1) >> 1
            if bounds[middle] <= address:
                low = middle
            else:
                high = middle - 1
        places[line] = bound_places[low]


@compiled
def _count(
    days: NDArray[np.int32],
    places: Places,
    row_days: NDArray[np.int32],
    counts: NDArray[np.int64],
    left: NDArray[np.int64],
) -> int:
    """Count lines in the rows of their days. Note lines that have no row in *left*, and return how many."""
    number = row = 0
    for line in range(len(days)):
        day = days[line]
        if row == len(row_days) or row_days[row] != day:
            row = 0
            while row < len(row_days) and row_days[row] != 0 and row_days[row] != day:
                row += 1
        if row == len(row_days):
            left[number] = line
            number += 1
        else:
            row_days[row] = day
            counts[row, places[line]] += 1
    return number
