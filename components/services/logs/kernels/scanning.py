"""
Lines read by machine code: one pass over the bytes, byte after byte.

The block ends with a newline, and no comparison goes on after a byte that differs. So nothing is read beyond a
line's end, and no index needs to be checked. What is no IPv4 address but has a colon is left to Python. Functions
that call each other stand in one module, since numba's cache looks at no other. parse_book and parse_combined are
longer than functions are elsewhere: what a loop carries from line to line would travel through a tuple of eight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from components.services.logs.addresses import LONGEST
from components.services.logs.columns import MAYBE_IPV6, READ, Offsets, Reason
from components.services.logs.kernels.compiling import compiled

_NEWLINE, _RETURN, _BLANK, _DOT, _COLON, _DASH, _SLASH, _QUOTE = b'\n\r .:-/"'
_OPEN, _CLOSE = b"[]"
_ZERO = 48
_STAMP = len("[10/Oct/2000:13:55:36 -0700")
_EMPTY, _FORMAT, _ADDRESS, _DATE = (int(reason) for reason in Reason)
#: Days before each month of a year that is no leap year.
_BEFORE = (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)
_MONTHS = np.frombuffer(b"JanFebMarAprMayJunJulAugSepOctNovDec", np.uint8)


@compiled
def _ipv4(a: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """The address that begins at *p*, and where it ends; -1 if none does."""
    value = 0
    for octet in range(4):
        number = a[p] - _ZERO
        if number < 0 or number > 9:
            return 0, -1
        p += 1
        digit = a[p] - _ZERO
        while 0 <= digit <= 9:
            number = number * 10 + digit
            if number < 10 or number > 255:  # a zero led it
                return 0, -1
            p += 1
            digit = a[p] - _ZERO
        value = value * 256 + number
        if octet < 3:
            if a[p] != _DOT:
                return 0, -1
            p += 1
    return value, p


@compiled
def _number(a: NDArray[np.uint8], p: int, digits: int) -> int:
    """The number of so many digits at *p*; -1 if one of them is none."""
    value = 0
    for at in range(p, p + digits):
        digit = a[at] - _ZERO
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@compiled
def _iso_date(a: NDArray[np.uint8], p: int) -> int:
    """2011-10-10 as 20111010; -1 if that is not how the bytes at *p* look."""
    year = _number(a, p, 4)
    if year < 0 or a[p + 4] != _DASH:
        return -1
    month = _number(a, p + 5, 2)
    if month < 0 or a[p + 7] != _DASH:
        return -1
    day = _number(a, p + 8, 2)
    return -1 if day < 0 else year * 10_000 + month * 100 + day


@compiled
def _web_date(a: NDArray[np.uint8], p: int) -> int:
    """10/Oct/2011 as 20111010; -1 if that is not how the bytes at *p* look."""
    day = _number(a, p, 2)
    if day < 0 or a[p + 2] != _SLASH:
        return -1
    month = 0
    for each in range(12):
        at = 3 * each
        if a[p + 3] == _MONTHS[at] and a[p + 4] == _MONTHS[at + 1] and a[p + 5] == _MONTHS[at + 2]:
            month = each + 1
    if month == 0 or a[p + 6] != _SLASH:
        return -1
    year = _number(a, p + 7, 4)
    return -1 if year < 0 else year * 10_000 + month * 100 + day


@compiled
def _ordinal(date: int) -> int:
    """20111010 as a number of days since the year 1; 0 if there is no such day."""
    year, month, day = date // 10_000, date // 100 % 100, date % 100
    if date < 0 or year < 1 or month < 1 or month > 12 or day < 1:
        return 0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _BEFORE[month + 1] - _BEFORE[month] + (1 if leap and month == 2 else 0):
        return 0
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    return days + _BEFORE[month] + (1 if leap and month > 2 else 0) + day


@compiled
def _find(a: NDArray[np.uint8], p: int, byte: int) -> int:
    """Where that byte comes next, or the line ends."""
    while a[p] != byte and a[p] != _NEWLINE:
        p += 1
    return p


@compiled
def _token(a: NDArray[np.uint8], start: int) -> tuple[int, int, int]:
    """The address that a line begins with; the blank after it, or -1; and what Python is to do with it."""
    address, p = _ipv4(a, start)
    if p >= 0 and a[p] == _BLANK:
        return address, p, READ
    p = _find(a, start, _BLANK)
    if a[p] != _BLANK:
        return 0, -1, _FORMAT
    is_ipv6 = p - start <= LONGEST and _find(a, start, _COLON) < p
    return 0, p, MAYBE_IPV6 if is_ipv6 else _ADDRESS


@compiled
def parse_book(
    a: NDArray[np.uint8],
    starts: Offsets,
    ends: Offsets,
    rests: Offsets,
    days: NDArray[np.int32],
    addresses: NDArray[np.uint32],
    reasons: NDArray[np.uint8],
) -> None:
    """Fill in what each line says, in the book's format."""
    start = line = 0
    known, known_day = -1, 0  # most lines are of the day of the line before
    while start < len(a):
        address, blank, reason = _token(a, start)
        date = _iso_date(a, blank + 1) if blank >= 0 else -1
        after = blank + 11 if date >= 0 else start
        newline = _find(a, after, _NEWLINE)
        end = newline - 1 if newline > start and a[newline - 1] == _RETURN else newline
        if date >= 0 and after != end and a[after] != _BLANK:
            date = -1
        if date != known:
            known, known_day = date, _ordinal(date)
        if start == end:
            reason = _EMPTY
        elif known_day == 0 and reason == READ:
            reason = _DATE
        starts[line], ends[line], rests[line] = start, end, after + (a[after] == _BLANK)
        days[line], addresses[line], reasons[line] = known_day, address, reason
        line += 1
        start = newline + 1


@compiled
def parse_combined(
    a: NDArray[np.uint8],
    starts: Offsets,
    ends: Offsets,
    rests: Offsets,
    days: NDArray[np.int32],
    addresses: NDArray[np.uint32],
    reasons: NDArray[np.uint8],
) -> None:
    """Fill in what each line says, in the format of web servers."""
    start = line = 0
    known, known_day = -1, 0
    while start < len(a):
        address, blank, reason = _token(a, start)
        close, date = start, -1
        if blank >= 0:
            close = _find(a, blank + 1, _CLOSE)
            while a[close] == _CLOSE and not (a[close + 1] == _BLANK and a[close + 2] == _QUOTE):
                close = _find(a, close + 1, _CLOSE)
            stamp = close - _STAMP
            if a[close] != _CLOSE:
                reason = _FORMAT
            elif stamp > blank and a[stamp - 1] == _BLANK and a[stamp] == _OPEN and a[stamp + 12] == _COLON:
                date = _web_date(a, stamp + 1)
        newline = _find(a, close, _NEWLINE)
        end = newline - 1 if newline > start and a[newline - 1] == _RETURN else newline
        if date != known:
            known, known_day = date, _ordinal(date)
        if start == end:
            reason = _EMPTY
        elif known_day == 0 and reason == READ:
            reason = _DATE
        starts[line], ends[line], rests[line] = start, end, close + 2
        days[line], addresses[line], reasons[line] = known_day, address, reason
        line += 1
        start = newline + 1
