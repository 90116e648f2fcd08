"""
A loop over the lines in plain Python: slow, and right by definition.

It shares nothing with the compiled kernel but the formats (formats.py), and searches the ranges as they were given.
The compiled kernel uses it for the formats that it cannot read itself.
"""

from bisect import bisect_right
from collections import Counter
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines.addresses import REMEMBERED
from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import Columns, Reason
from components.services.logs.lines.formats import Fields, Format
from components.services.logs.lines.place_table import UNKNOWN, Places, PlaceTable
from components.services.logs.lines.values import PlainValues, Spans, plain_spans

_Ranges: TypeAlias = tuple[list[Any], list[Any], list[int]]


class Naive:
    """The kernel "naive"."""

    name = "naive"

    def __init__(self) -> None:
        self._table: PlaceTable | None = None

    def columns(self, block: bytes, form: Format) -> Columns:
        read: list[tuple[int, int, Fields]] = []
        rejected: list[tuple[int, int, Reason]] = []
        start = 0
        while start < len(block):
            following = block.find(b"\n", start) + 1 or len(block)
            line = block[start:following].removesuffix(b"\n").removesuffix(b"\r")
            found = form.read(line) if line else Reason.EMPTY
            if isinstance(found, Reason):
                rejected.append((start, start + len(line), found))
            else:
                read.append((start, start + len(line), found))
            start = following
        return _columns(block, read, rejected)

    def places(self, columns: Columns, table: PlaceTable) -> Places:
        if table is not self._table:
            self._use(table)
        places = [self._place_of_ipv4(address) for address in columns.addresses.tolist()]
        for line, address in zip(columns.ipv6_lines.tolist(), columns.ipv6, strict=True):
            places[line] = self._place_of_ipv6(int.from_bytes(address.tobytes(), "big"))
        return np.array(places, np.uint32)

    def _use(self, table: PlaceTable) -> None:
        self._table = table
        ipv4 = _lists(table.ipv4_starts, table.ipv4_ends, table.ipv4_places)
        starts, ends, places = _lists(table.ipv6_starts, table.ipv6_ends, table.ipv6_places)
        ipv6 = [_number(each) for each in starts], [_number(each) for each in ends], places
        # Visitors return: an address is searched once for many lines.
        self._place_of_ipv4 = lru_cache(REMEMBERED)(partial(_seek, ipv4))
        self._place_of_ipv6 = lru_cache(REMEMBERED)(partial(_seek, ipv6))

    def count(self, cells: Cells, days: NDArray[np.int32], places: Places) -> None:
        for (day, place), lines in Counter(zip(days.tolist(), places.tolist(), strict=True)).items():
            cells.add(day, place, lines)

    def spans(self, columns: Columns, form: Format) -> Spans:
        return plain_spans(columns, form)

    def values(self) -> PlainValues:
        return PlainValues()


def _columns(
    block: bytes, read: list[tuple[int, int, Fields]], rejected: list[tuple[int, int, Reason]]
) -> Columns:
    ipv6 = [line for line, (_start, _end, fields) in enumerate(read) if fields.version == 6]
    return Columns(
        data=block,
        starts=np.array([start for start, _end, _fields in read], np.int64),
        ends=np.array([end for _start, end, _fields in read], np.int64),
        rests=np.array([start + fields.rest for start, _end, fields in read], np.int64),
        days=np.array([fields.day for _start, _end, fields in read], np.int32),
        addresses=np.array([f.address if f.version == 4 else 0 for _start, _end, f in read], np.uint32),
        ipv6_lines=np.array(ipv6, np.int64),
        ipv6=np.frombuffer(b"".join(read[line][2].address.to_bytes(16, "big") for line in ipv6), "V16"),
        rejected_starts=np.array([start for start, _end, _reason in rejected], np.int64),
        rejected_ends=np.array([end for _start, end, _reason in rejected], np.int64),
        reasons=np.array([reason for _start, _end, reason in rejected], np.uint8),
        minutes=np.array([fields.minute for _start, _end, fields in read], np.int16),
        statuses=np.array([fields.status for _start, _end, fields in read], np.int16),
    )


def _lists(*columns: NDArray[Any]) -> _Ranges:
    starts, ends, places = (column.tolist() for column in columns)
    return starts, ends, places


def _number(address: bytes) -> int:
    """Return an address from which numpy has removed the zeros at the end, as a number."""
    return int.from_bytes(address.ljust(16, b"\0"), "big")


def _seek(ranges: _Ranges, address: int) -> int:
    starts, ends, places = ranges
    at = bisect_right(starts, address) - 1
    return places[at] if at >= 0 and address <= ends[at] else UNKNOWN
