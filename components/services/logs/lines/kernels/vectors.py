"""
The kernel that needs no compiler: each step is done for all lines of a block at once (numpy).

The positions of newlines, blanks and dots are found once; each fact about a line is then a gather at known distances
from these. Positions outside of the block are read as its first or last byte. The result of such a read is never
used: a line that lacks a blank, a dot or a bracket is refused for that. An address that is not IPv4 but has a colon
is left to Python.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines.addresses import LONGEST
from components.services.logs.lines.cells import Cells
from components.services.logs.lines.columns import MAYBE_IPV6, READ, Columns, Offsets, Raw, Reason
from components.services.logs.lines.formats import Book, Combined, Format
from components.services.logs.lines.kernels.naive import Naive
from components.services.logs.lines.place_table import Places, PlaceTable
from components.services.logs.lines.values import PlainValues, Spans, plain_spans

Bytes: TypeAlias = NDArray[np.uint8]
Truths: TypeAlias = NDArray[np.bool_]
Days: TypeAlias = NDArray[np.int32]

#: The length of a time as web servers usually write it, and of its part up to the second.
_STAMP, _CLOCK_END = len("[10/Oct/2000:13:55:36 -0700"), len("[10/Oct/2000:13:55:36")
_FRACTION = 9  # digits of a second, at most
_NOWHERE = np.iinfo(np.int64).max // 2
#: Days before each month of a year that is not a leap year.
_BEFORE = np.array([0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_MONTHS = [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"]


class Vectors:
    """The kernel "numpy"."""

    name = "numpy"

    def columns(self, block: bytes, form: Format) -> Columns:
        if not block or type(form) not in (Book, Combined):
            return Naive().columns(block, form)
        ended = block if block.endswith(b"\n") else block + b"\n"
        a = np.frombuffer(ended, np.uint8)
        newlines = _all(a, "\n")
        starts = np.concatenate(([0], newlines[:-1] + 1))
        ends = newlines - ((newlines > starts) & (_at(a, newlines - 1) == ord("\r")))
        blanks = _next(_all(a, " "), starts, newlines)
        fields = _book if isinstance(form, Book) else _combined
        is_form, days, rests, clocks = fields(a, blanks, ends)
        low, reasons = _addresses(a, starts, np.where(is_form, blanks, starts))
        reasons[(reasons == READ) & (days == 0)] = Reason.DATE
        reasons[~is_form] = Reason.FORMAT
        reasons[starts == ends] = Reason.EMPTY
        minutes = _minutes(a, clocks)
        is_web = isinstance(form, Combined)
        statuses = _statuses(a, rests, newlines) if is_web else np.zeros(len(starts), np.int16)
        high = np.zeros_like(low)
        return Raw(starts, ends, rests, days, high, low, reasons, minutes, statuses).columns(block)

    def places(self, columns: Columns, table: PlaceTable) -> Places:
        places: Places = table.slots[columns.addresses >> 8].astype(np.uint32)
        split = np.flatnonzero(places == table.split)
        at = np.searchsorted(table.bounds, columns.addresses[split], "right") - 1
        places[split] = table.bound_places[at]
        if len(columns.ipv6_lines):
            places[columns.ipv6_lines] = table.ipv6_of(columns)
        return places

    def count(self, cells: Cells, days: Days, places: Places) -> None:
        for day in np.unique_values(days).tolist():
            lines = days == day
            row = cells.row_of(day)
            if row is None:
                cells.add_each(days[lines], places[lines])
            else:
                found = np.unique_counts(places[lines])
                cells.counts[row, found.values] += found.counts

    def spans(self, columns: Columns, form: Format) -> Spans:
        if not len(columns) or type(form) is not Combined:
            return plain_spans(columns, form)
        a = np.frombuffer(columns.data, np.uint8)
        quotes = _all(a, '"')
        quotes = quotes[(quotes == 0) | (_at(a, quotes - 1) != ord("\\"))]
        first = np.searchsorted(quotes, columns.rests)
        marks = np.append(quotes, [_NOWHERE] * 6)[first + np.arange(6)[:, np.newaxis]]
        marks = np.where(marks < columns.ends, marks, -1)
        starts, ends = marks[::2] + 1, np.where(marks[1::2] >= 0, marks[1::2], marks[::2] + 1)
        blanks = _all(a, " ")
        target = _before(blanks, starts[0], ends[0]) + 1
        starts[0] = np.minimum(target, ends[0])
        for byte in " ?#":
            ends[0] = _before(_all(a, byte), starts[0], ends[0])
        host = _all(a, ":")
        host = host[(_at(a, host + 1) == ord("/")) & (_at(a, host + 2) == ord("/"))]
        after = _before(host, starts[1], ends[1]) + 3
        starts[1] = np.where(after < ends[1], after, starts[1])
        for byte in "/?#":
            ends[1] = _before(_all(a, byte), starts[1], ends[1])
        is_none = (ends - starts == 1) & (_at(a, starts) == ord("-"))
        return Spans(columns.data, np.where(is_none, ends, starts), ends)

    def values(self) -> PlainValues:
        return PlainValues()


def _before(found: Offsets, positions: Offsets, limits: Offsets) -> Offsets:
    """Return the first of *found* from each position on, or the limit if none comes before it."""
    at = _next(found, positions, limits)
    return np.where(at >= 0, at, limits)


def _all(a: Bytes, byte: str) -> Offsets:
    return np.flatnonzero(a == ord(byte))


def _at(a: Bytes, positions: Offsets) -> Bytes:
    return a.take(positions, mode="clip")


def _next(found: Offsets, positions: Offsets, limits: Offsets) -> Offsets:
    """Return the first of *found* from each position on; -1 if none comes before the limit."""
    at = np.append(found, _NOWHERE)[np.searchsorted(found, positions)]
    return np.where(at < limits, at, -1)


def _number(a: Bytes, positions: Offsets, digits: int) -> NDArray[np.int64]:
    """Return the number that is written in so many digits at each position; -1 if one of the bytes is not a digit."""
    value, is_bad = np.zeros(len(positions), np.int64), np.zeros(len(positions), np.bool_)
    for at in range(digits):
        digit = _at(a, positions + at) - np.uint8(ord("0"))  # a byte that is not a digit wraps to more than 9
        is_bad |= digit > 9
        value = value * 10 + digit
    return np.where(is_bad, -1, value)


def _book(a: Bytes, blanks: Offsets, ends: Offsets) -> tuple[Truths, Days, Offsets, Offsets]:
    """Return for each line whether it is of this format, its day or 0, and where the rest and the time begin."""
    year, month, day = (_number(a, blanks + at, digits) for at, digits in ((1, 4), (6, 2), (9, 2)))
    after = blanks + 11
    is_blank = _at(a, after) == ord(" ")
    is_date = (_at(a, blanks + 5) == ord("-")) & (_at(a, blanks + 8) == ord("-"))
    is_date &= (after <= ends) & ((after == ends) | is_blank)
    return (
        blanks >= 0,
        _ordinals(is_date, year, month, day),
        after + is_blank,
        np.where(is_blank, after + 1, ends),
    )


def _combined(a: Bytes, blanks: Offsets, ends: Offsets) -> tuple[Truths, Days, Offsets, Offsets]:
    closes = _all(a, "]")
    closes = closes[(_at(a, closes + 1) == ord(" ")) & (_at(a, closes + 2) == ord('"'))]
    close = np.where(blanks >= 0, _next(closes, blanks + 1, ends), -1)
    stamp = close - _STAMP
    is_time = (close >= 0) & _is_begun(a, stamp, blanks) & (_at(a, stamp + _CLOCK_END) == ord(" "))
    is_time &= _is_sign(a, stamp + 22) & _is_pair(a, stamp + 23, _HOURS) & _is_pair(a, stamp + 25, _MINUTES)
    others = np.flatnonzero((close >= 0) & ~is_time)
    if len(others):  # written in another way, or not a time
        stamp[others], is_time[others] = _others(a, blanks[others], close[others])
    day, year = _number(a, stamp + 1, 2), _number(a, stamp + 8, 4)
    is_time &= (_at(a, stamp + 3) == ord("/")) & (_at(a, stamp + 7) == ord("/"))
    return close >= 0, _ordinals(is_time, year, _months(a, stamp + 4), day), close + 2, stamp + 13


def _minutes(a: Bytes, clocks: Offsets) -> NDArray[np.int16]:
    """Return the minute of the day of `13:55` at each position; -1 where there is no such text."""
    hour, minute = _number(a, clocks, 2), _number(a, clocks + 3, 2)
    is_clock = (hour >= 0) & (hour < 24) & (_at(a, clocks + 2) == ord(":")) & (minute >= 0) & (minute < 60)
    return np.where(is_clock, hour * 60 + minute, -1).astype(np.int16)


def _statuses(a: Bytes, requests: Offsets, newlines: Offsets) -> NDArray[np.int16]:
    """Return the status after the request that begins at each position; 0 where there is none."""
    quotes = _all(a, '"')
    quotes = quotes[_at(a, quotes - 1) != ord("\\")]
    quote = _next(quotes, requests + 1, newlines)
    status = _number(a, quote + 2, 3)
    is_status = (quote >= 0) & (_at(a, quote + 1) == ord(" ")) & (status >= 100) & (status < 600)
    return np.where(is_status & ~_is_digit(a, quote + 5), status, 0).astype(np.int16)


def _is_begun(a: Bytes, stamp: Offsets, blanks: Offsets) -> Truths:
    """Return whether a bracket opens there, and a day and then a time of the day may follow."""
    is_time = stamp > blanks
    for at, byte in ((-1, " "), (0, "["), (12, ":"), (15, ":"), (18, ":")):
        is_time &= _at(a, stamp + at) == ord(byte)
    for at, pairs in ((13, _HOURS), (16, _MINUTES), (19, _SECONDS)):
        is_time &= _is_pair(a, stamp + at, pairs)
    return is_time


def _others(a: Bytes, blanks: Offsets, close: Offsets) -> tuple[Offsets, Truths]:
    """Return where unusually written times begin, and whether they are valid times. Their days are not checked."""
    opens = np.append(_all(a, "["), -1)  # -1 where none opens before: index -1 is the last entry
    stamp = opens[np.searchsorted(opens[:-1], close) - 1]
    end = stamp + _CLOCK_END
    is_time = (end <= close) & _is_begun(a, stamp, blanks)
    has_fraction = (_at(a, end) == ord(".")) | (_at(a, end) == ord(","))
    end = end + has_fraction
    is_time &= ~has_fraction | _is_digit(a, end)
    goes_on = has_fraction
    for _ in range(_FRACTION):
        goes_on = goes_on & _is_digit(a, end)
        end = end + goes_on
    return stamp, is_time & ((end == close) | _is_zone(a, end, close))


def _is_zone(a: Bytes, at: Offsets, close: Offsets) -> Truths:
    at = at + (_at(a, at) == ord(" "))
    is_zulu = (_at(a, at) == ord("Z")) & (at + 1 == close)
    minutes = at + 3 + (_at(a, at + 3) == ord(":"))
    is_zone = _is_sign(a, at) & _is_pair(a, at + 1, _HOURS) & _is_pair(a, minutes, _MINUTES)
    found: Truths = is_zulu | is_zone & (minutes + 2 == close)
    return found


def _is_digit(a: Bytes, positions: Offsets) -> Truths:
    is_digit: Truths = _at(a, positions) - np.uint8(ord("0")) <= 9  # a byte that is not a digit wraps to more
    return is_digit


def _is_sign(a: Bytes, positions: Offsets) -> Truths:
    sign = _at(a, positions)
    is_sign: Truths = (sign == ord("+")) | (sign == ord("-"))
    return is_sign


def _pairs(count: int) -> Truths:
    """Return for every pair of bytes, as one number, whether they are the digits of a number below *count*."""
    is_pair = np.zeros(1 << 16, np.bool_)
    is_pair[[(ord("0") + number // 10) << 8 | ord("0") + number % 10 for number in range(count)]] = True
    return is_pair


_HOURS, _MINUTES, _SECONDS = _pairs(24), _pairs(60), _pairs(61)


def _is_pair(a: Bytes, positions: Offsets, pairs: Truths) -> Truths:
    return pairs.take(_at(a, positions).astype(np.uint16) << 8 | _at(a, positions + 1))


def _months(a: Bytes, positions: Offsets) -> NDArray[np.int64]:
    """Return the number of each month: 1 for Jan, 0 for anything that is not a month."""
    letters = [_at(a, positions + at) for at in range(3)]
    found = np.zeros(len(positions), np.int64)
    for month, name in enumerate(_MONTHS, 1):
        found[(letters[0] == name[0]) & (letters[1] == name[1]) & (letters[2] == name[2])] = month
    return found


def _ordinals(
    is_date: Truths, year: NDArray[np.int64], month: NDArray[np.int64], day: NDArray[np.int64]
) -> Days:
    """Return the days since the year 1; 0 if there is no such day."""
    is_date = is_date & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    month = np.where(is_date, month, 1)
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    is_date &= day <= _BEFORE[month + 1] - _BEFORE[month] + (is_leap & (month == 2))
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    return np.where(is_date, days + _BEFORE[month] + (is_leap & (month > 2)) + day, 0).astype(np.int32)


def _addresses(a: Bytes, starts: Offsets, ends: Offsets) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return IPv4 addresses, and READ, ADDRESS or MAYBE_IPV6 for each."""
    dots = np.append(_all(a, "."), [_NOWHERE] * 3)
    first = np.searchsorted(dots[:-3], starts)
    marks = [starts - 1, dots[first], dots[first + 1], dots[first + 2], ends]
    value, is_good = np.zeros(len(starts), np.int64), np.ones(len(starts), np.bool_)
    for begin, end in pairwise(marks):
        digits = end - begin - 1
        number = np.zeros(len(starts), np.int64)
        is_good &= (digits >= 1) & (digits <= 3)  # so all three dots come before the end
        for place in (1, 2, 3):  # from the right
            digit = _at(a, end - place) - np.uint8(ord("0"))
            is_good &= (digit <= 9) | (digits < place)
            number += np.where(digits >= place, digit.astype(np.int64) * 10 ** (place - 1), 0)
        is_good &= (number <= 255) & ((digits == 1) | (number >= 10) & (digits == 2) | (number >= 100))
        value = value << 8 | number
    has_colon = (_next(_all(a, ":"), starts, ends) >= 0) & (ends - starts <= LONGEST)
    others = np.where(has_colon, MAYBE_IPV6, Reason.ADDRESS)
    return value, np.where(is_good, READ, others).astype(np.uint8)
