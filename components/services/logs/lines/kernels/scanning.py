"""
Lines read by machine code: one pass over the bytes, byte after byte.

The block ends with a newline, and a comparison stops at the first byte that differs. So nothing is read beyond the
end of a line, and no index needs to be checked. An address with a colon that does not consist of hexadecimal groups
alone, such as one that ends like IPv4, is left to Python. Functions that call each other are in one module, since
numba's cache notices no change in another. parse_book and parse_combined are long because each part of a divided loop
would have to pass eight values on.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from components.services.logs.lines.addresses import LONGEST
from components.services.logs.lines.columns import MAYBE_IPV6, READ, READ_IPV6, Offsets, Reason

_NEWLINE, _RETURN, _BLANK, _DOT, _COLON, _DASH, _SLASH, _QUOTE, _BACKSLASH = b'\n\r .:-/"\\'
_OPEN, _CLOSE, _COMMA, _PLUS, _ZULU = b"[],+Z"
_QUESTION, _HASH, _AT = b"?#@"
_ZERO, _A = b"0a"
_BOM = 0xEF  # the first of three bytes
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_SHORTEST, _LONGEST = len("[10/Oct/2000:13:55:36"), len("[10/Oct/2000:13:55:36.123456789 -07:00")
_FRACTION = 9  # digits of a second, at most
_EMPTY, _FORMAT, _ADDRESS, _DATE = (
    int(Reason.EMPTY),
    int(Reason.FORMAT),
    int(Reason.ADDRESS),
    int(Reason.DATE),
)
#: Days before each month of a year that is not a leap year.
_BEFORE = (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)
_MONTHS = np.frombuffer(b"JanFebMarAprMayJunJulAugSepOctNovDec", np.uint8)

_F = TypeVar("_F", bound=Callable[..., Any])


def compiled(function: _F) -> _F:
    """
    Return *function* as machine code, compiled when first used. Other threads run while it runs.

    numba keeps it for the next process in NUMBA_CACHE_DIR if that is set, in __pycache__ beside the source, or in the
    user's folder for caches. If it cannot write to any of them, each process compiles for itself, in seconds.
    """
    try:
        return cast(_F, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder for the cache
        return cast(_F, njit(nogil=True)(function))


@compiled
def _ipv4(a: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """Return the address that begins at *p*, and where it ends; -1 if none begins there."""
    value = 0
    for octet in range(4):
        number = a[p] - _ZERO
        if number < 0 or number > 9:
            return 0, -1
        p += 1
        digit = a[p] - _ZERO
        while 0 <= digit <= 9:
            number = number * 10 + digit
            if number < 10 or number > 255:  # a leading zero, or too large
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
    """Return the number that is written in so many digits at *p*; -1 if one of the bytes is not a digit."""
    value = 0
    for at in range(p, p + digits):
        digit = a[at] - _ZERO
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@compiled
def _iso_date(a: NDArray[np.uint8], p: int) -> int:
    """Read 2011-10-10 at *p* and return 20111010; -1 if the bytes do not look like that."""
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
    """Read 10/Oct/2011 at *p* and return 20111010; -1 if the bytes do not look like that."""
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
def _clock(a: NDArray[np.uint8], p: int, last: int) -> bool:
    """Return whether there are two digits at *p*, for a number of at most *last*."""
    return 0 <= _number(a, p, 2) <= last


@compiled
def _zone(a: NDArray[np.uint8], p: int, close: int) -> bool:
    """Return whether the bytes from *p* to *close* are a zone, with or without a blank before it."""
    if a[p] == _BLANK:
        p += 1
    if a[p] == _ZULU:
        return p + 1 == close
    if (a[p] != _PLUS and a[p] != _DASH) or not _clock(a, p + 1, 23):
        return False
    p += 4 if a[p + 3] == _COLON else 3
    return _clock(a, p, 59) and p + 2 == close


@compiled
def _minute(a: NDArray[np.uint8], p: int) -> int:
    """Return the minute of the day of `13:55` at *p*; -1 if there is no such text."""
    hour = _number(a, p, 2)
    if hour < 0 or hour > 23 or a[p + 2] != _COLON:
        return -1
    minute = _number(a, p + 3, 2)
    return -1 if minute < 0 or minute > 59 else hour * 60 + minute


@compiled
def _status(a: NDArray[np.uint8], p: int) -> int:
    """Return the status at *p*, after a blank; 0 if there is none."""
    if a[p] != _BLANK:
        return 0
    status = _number(a, p + 1, 3)
    return status if 100 <= status <= 599 and _number(a, p + 4, 1) < 0 else 0


@compiled
def _web_time(a: NDArray[np.uint8], blank: int, close: int) -> tuple[int, int]:
    """Return the day of the time in brackets that ends at *close*, as 20111010, and its minute; -1 if it is none."""
    p = close - _SHORTEST
    while p > blank and a[p] != _OPEN and close - p < _LONGEST:
        p -= 1
    if p <= blank or a[p] != _OPEN or a[p - 1] != _BLANK or a[p + 12] != _COLON or not _clock(a, p + 13, 23):
        return -1, -1
    if a[p + 15] != _COLON or not _clock(a, p + 16, 59) or a[p + 18] != _COLON or not _clock(a, p + 19, 60):
        return -1, -1
    end = p + _SHORTEST
    if a[end] == _DOT or a[end] == _COMMA:
        first = end + 1
        end = first
        while end - first < _FRACTION and _number(a, end, 1) >= 0:
            end += 1
        if end == first:
            return -1, -1
    if end != close and not _zone(a, end, close):
        return -1, -1
    return _web_date(a, p + 1), _minute(a, p + 13)


@compiled
def _ordinal(date: int) -> int:
    """Convert 20111010 to the number of days since the year 1; return 0 if there is no such day."""
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
    """Return where that byte comes next, or where the line ends."""
    while a[p] != byte and a[p] != _NEWLINE:
        p += 1
    return p


@compiled
def _ipv6(a: NDArray[np.uint8], p: int) -> tuple[int, int, int]:
    """Return the two halves of an address of hexadecimal groups, and where it ends; -1 if Python has to read it."""
    high = low = head_high = head_low = groups = 0
    gap = -1  # the number of groups before "::"
    if a[p] == _COLON and a[p + 1] == _COLON:
        gap, p = 0, p + 2
    while True:
        group, end = _group(a, p)
        if end == p:
            break
        high, low = high << 16 | (low >> 48) & 0xFFFF, low << 16 | group
        groups, p = groups + 1, end
        if groups > 8 or a[p] != _COLON:
            break
        p += 1
        if a[p] == _COLON and gap < 0:
            head_high, head_low, high, low = high, low, 0, 0
            gap, p = groups, p + 1
        elif _group(a, p)[1] == p:
            return 0, 0, -1
    if groups > 8 or (groups == 8) != (gap < 0):
        return 0, 0, -1
    for _ in range(8 - gap if gap > 0 else 0):
        head_high, head_low = head_high << 16 | (head_low >> 48) & 0xFFFF, head_low << 16
    return head_high | high, head_low | low, p


@compiled
def _group(a: NDArray[np.uint8], p: int) -> tuple[int, int]:
    """Return the number of up to four hexadecimal digits at *p*, and where it ends."""
    value, last = 0, p + 4
    while p < last:
        digit = a[p] - _ZERO
        if digit < 0 or digit > 9:
            digit = (a[p] | 32) - _A + 10  # a letter, capital or not
            if digit < 10 or digit > 15:
                break
        value, p = value * 16 + digit, p + 1
    return value, p


@compiled
def _token(a: NDArray[np.uint8], start: int) -> tuple[int, int, int, int]:
    """Return the halves of the address of a line, where the blank after it is (-1: none), and READ or a reason."""
    low, p = _ipv4(a, start)
    if p >= 0 and a[p] == _BLANK:
        return 0, low, p, READ
    high, low, p = _ipv6(a, start)
    if p >= 0 and a[p] == _BLANK:
        if high == 0 and low >> 32 == 0xFFFF:  # it holds an IPv4 address
            return 0, low & 0xFFFFFFFF, p, READ
        return high, low, p, READ_IPV6
    p = _find(a, start, _BLANK)
    if a[p] != _BLANK:
        return 0, 0, -1, _FORMAT
    is_unusual = a[start] == _BOM or _find(a, start, _COLON) < p
    return 0, 0, p, MAYBE_IPV6 if is_unusual and p - start <= LONGEST + 3 else _ADDRESS


@compiled
def _is_escaped(a: NDArray[np.uint8], p: int) -> bool:
    """Return whether an odd number of backslashes stands before *p*."""
    first = p
    while first > 0 and a[first - 1] == _BACKSLASH:
        first -= 1
    return (p - first) % 2 == 1


@compiled
def parse_book(
    a: NDArray[np.uint8],
    starts: Offsets,
    ends: Offsets,
    rests: Offsets,
    days: NDArray[np.int32],
    high: NDArray[np.int64],
    low: NDArray[np.int64],
    reasons: NDArray[np.uint8],
    minutes: NDArray[np.int16],
    statuses: NDArray[np.int16],
) -> None:
    """Fill the columns from lines in the book's format."""
    start = line = 0
    known, known_day = -1, 0  # most lines have the day of the line before
    while start < len(a):
        first, second, blank, reason = _token(a, start)
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
        elif known_day == 0 and reason in (READ, READ_IPV6):
            reason = _DATE
        starts[line], ends[line], rests[line] = start, end, after + (a[after] == _BLANK)
        days[line], reasons[line] = known_day, reason
        minutes[line] = _minute(a, after + 1) if a[after] == _BLANK else -1
        statuses[line] = 0
        high[line], low[line] = first, second
        line += 1
        start = newline + 1


@compiled
def parse_combined(
    a: NDArray[np.uint8],
    starts: Offsets,
    ends: Offsets,
    rests: Offsets,
    days: NDArray[np.int32],
    high: NDArray[np.int64],
    low: NDArray[np.int64],
    reasons: NDArray[np.uint8],
    minutes: NDArray[np.int16],
    statuses: NDArray[np.int16],
) -> None:
    """Fill the columns from lines in the format of web servers."""
    start = line = 0
    known, known_day = -1, 0
    while start < len(a):
        first, second, blank, reason = _token(a, start)
        after, close, date, minute, status = start, start, -1, -1, 0
        if blank >= 0:
            close = _find(a, blank + 1, _CLOSE)
            while a[close] == _CLOSE and not (a[close + 1] == _BLANK and a[close + 2] == _QUOTE):
                close = _find(a, close + 1, _CLOSE)
            after = close
            if a[close] != _CLOSE:
                reason = _FORMAT
            else:
                date, minute = _web_time(a, blank, close)
                quote = _find(a, close + 3, _QUOTE)
                while a[quote] == _QUOTE and _is_escaped(a, quote):
                    quote = _find(a, quote + 1, _QUOTE)
                status = _status(a, quote + 1) if a[quote] == _QUOTE else 0
                after = quote
        newline = _find(a, after, _NEWLINE)
        end = newline - 1 if newline > start and a[newline - 1] == _RETURN else newline
        if date != known:
            known, known_day = date, _ordinal(date)
        if start == end:
            reason = _EMPTY
        elif known_day == 0 and reason in (READ, READ_IPV6):
            reason = _DATE
        starts[line], ends[line], rests[line] = start, end, close + 2
        days[line], reasons[line] = known_day, reason
        minutes[line], statuses[line] = minute, status
        high[line], low[line] = first, second
        line += 1
        start = newline + 1


@compiled
def _mark(a: NDArray[np.uint8], p: int, end: int) -> int:
    """Return where the next quotation mark is that is not escaped, or *end*."""
    while p < end and (a[p] != _QUOTE or _is_escaped(a, p)):
        p += 1
    return p


@compiled
def _host_end(a: NDArray[np.uint8], p: int, end: int) -> int:
    """Return where the host of an address ends that begins at *p*, or *end*."""
    while p < end and a[p] != _SLASH and a[p] != _QUESTION and a[p] != _HASH:
        p += 1
    return p


@compiled
def _after_user(a: NDArray[np.uint8], start: int, end: int) -> int:
    """Return where a host begins: after the last "@", or at *start*."""
    p = end
    while p > start and a[p - 1] != _AT:
        p -= 1
    return p


@compiled
def _path(a: NDArray[np.uint8], start: int, end: int) -> int:
    """Return where the path of a target begins: after a scheme and a host, or a user."""
    stop, colon = _host_end(a, start, end), _find(a, start, _COLON)
    if start < colon == stop - 1 and stop + 1 < end and a[stop] == _SLASH and a[stop + 1] == _SLASH:
        return _host_end(a, stop + 2, end)
    return _after_user(a, start, stop)


@compiled
def find_parts(
    a: NDArray[np.uint8],
    rests: Offsets,
    line_ends: Offsets,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """Find the path, the host of the referrer and the agent of lines in the format of web servers."""
    for line in range(len(rests)):
        last = line_ends[line]
        p = rests[line]
        for part in range(3):
            opens = _mark(a, p, last)
            closes = _mark(a, opens + 1, last) if opens < last else last
            start = end = opens + 1
            if closes < last:
                end = closes
                if part == 0:
                    while start < end and a[start] != _BLANK:
                        start += 1
                    start = min(start + 1, end)
                    end = min(_find(a, start, _BLANK), end)
                    start = _path(a, start, end)
                    p = start
                    while p < end and a[p] != _QUESTION and a[p] != _HASH:
                        p += 1
                    end = p
                elif part == 1:
                    p = start
                    while p < end and not (
                        a[p] == _COLON and p + 2 < end and a[p + 1] == _SLASH and a[p + 2] == _SLASH
                    ):
                        p += 1
                    if p + 3 < end:
                        start = p + 3
                    end = _host_end(a, start, end)
                    start = _after_user(a, start, end)
                if end - start == 1 and a[start] == _DASH:
                    start = end
            starts[part, line], ends[part, line] = start, end
            p = min(closes + 1, last)


@compiled
def _eight(a: NDArray[np.uint8], p: int) -> np.uint64:
    return (
        np.uint64(a[p])
        | np.uint64(a[p + 1]) << np.uint64(8)
        | np.uint64(a[p + 2]) << np.uint64(16)
        | np.uint64(a[p + 3]) << np.uint64(24)
        | np.uint64(a[p + 4]) << np.uint64(32)
        | np.uint64(a[p + 5]) << np.uint64(40)
        | np.uint64(a[p + 6]) << np.uint64(48)
        | np.uint64(a[p + 7]) << np.uint64(56)
    )


@compiled
def _hash(a: NDArray[np.uint8], start: int, end: int, seed: np.uint64) -> np.uint64:
    value = seed ^ np.uint64(end - start)
    p = start
    while p + 8 <= end:
        value = (value ^ _eight(a, p)) * _PRIME
        value ^= value >> np.uint64(29)
        p += 8
    while p < end:
        value = (value ^ np.uint64(a[p])) * _PRIME
        p += 1
    return value ^ value >> np.uint64(32)


@compiled
def number_values(
    a: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    seed: np.uint64,
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    value_ends: NDArray[np.int64],
    values: NDArray[np.uint8],
    count: int,
    found: NDArray[np.int64],
) -> int:
    """Fill in the number of each value, note new ones in the four columns, and return how many there are now."""
    mask = np.uint64(len(slots) - 1)
    for line in range(len(starts)):
        start, end = starts[line], ends[line]
        code = _hash(a, start, end, seed)
        slot = code & mask
        number = slots[slot]
        while number >= 0:
            at = value_ends[number]
            if hashes[number] == code and value_ends[number + 1] - at == end - start:
                p = start
                while p < end and values[at + p - start] == a[p]:
                    p += 1
                if p == end:
                    break
            slot = (slot + np.uint64(1)) & mask
            number = slots[slot]
        if number < 0:
            number = count
            at = value_ends[count]
            for p in range(start, end):
                values[at + p - start] = a[p]
            hashes[count], value_ends[count + 1], slots[slot] = code, at + end - start, count
            count += 1
        found[line] = number
    return count


@compiled
def fill_slots(slots: NDArray[np.int32], hashes: NDArray[np.uint64], count: int) -> None:
    """Note the values again, in more slots."""
    mask = np.uint64(len(slots) - 1)
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number
