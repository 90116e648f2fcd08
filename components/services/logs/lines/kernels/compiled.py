"""The kernel of machine code (numba): one loop reads lines, one finds their places, one counts them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import Columns, Raw
from components.services.logs.lines.formats import Book, Combined, Format
from components.services.logs.lines.kernels.compiling import compiled
from components.services.logs.lines.kernels.naive import Naive
from components.services.logs.lines.kernels.scanning import parse_book, parse_combined
from components.services.logs.lines.place_table import Places, PlaceTable

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
        parse(
            np.frombuffer(ended, np.uint8),
            raw.starts,
            raw.ends,
            raw.rests,
            raw.days,
            raw.high,
            raw.low,
            raw.reasons,
            raw.minutes,
            raw.statuses,
        )
        return raw.columns(block)

    def places(self, columns: Columns, table: PlaceTable) -> Places:
        places = np.empty(len(columns), np.uint32)
        _seek(
            columns.addresses,
            table.slots,
            table.split,
            table.buckets,
            table.bounds,
            table.bound_places,
            places,
        )
        if len(columns.ipv6_lines):
            places[columns.ipv6_lines] = table.ipv6_of(columns)
        return places

    def count(self, cells: Cells, days: NDArray[np.int32], places: Places) -> None:
        left = np.empty(len(days), np.int64)
        if number := _count(days, places, cells.days, cells.counts, left):
            cells.add_each(days[left[:number]], places[left[:number]])


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
