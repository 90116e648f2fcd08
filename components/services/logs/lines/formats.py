"""
Formats of lines, and how a line is read in plain Python: the rules that both kernels follow.

The compiled kernel has its own code for the book's format and the combined format of web servers, which tests compare
with read() here. JSON and regular expressions are read by read() itself, line by line. Only the address and the day
decide whether a line counts; the rest of it is ignored. The day is the one that is written in the line: no time zone
is converted.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple, Protocol

from components.exceptions import InvalidValue
from components.services.logs.lines.addresses import parse_address
from components.services.logs.lines.columns import Reason

_DAYS = 4_096  # days that are remembered in each spelling: more than eleven years
_ISO = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_WEB = re.compile(rb"([0-9]{2})/([A-Z][a-z]{2})/([0-9]{4})")
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_HOUR, _MINUTE, _SECOND = rb"(?:[01][0-9]|2[0-3])", rb"[0-5][0-9]", rb"(?:[0-5][0-9]|60)"
#: The time between the brackets: a fraction of the second and the zone are optional.
_WEB_TIME = re.compile(
    rb"([0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}):%s:%s:%s(?:[.,][0-9]{1,9})?(?: ?(?:Z|[+-]%s:?%s))?"
    % (_HOUR, _MINUTE, _SECOND, _HOUR, _MINUTE)
)
#: What may follow a day, and must be a time of the day if it looks like one.
_CLOCK = re.compile(rb"[T :\t][0-9]{2}:[0-9]{2}(?::[0-9]{2})?")
_GOOD_CLOCK = re.compile(rb"[T :\t]%s:%s(?::%s)?" % (_HOUR, _MINUTE, _SECOND))
_HOUR_AND_MINUTE = re.compile(rb"([01][0-9]|2[0-3]):([0-5][0-9])")
_STATUS = re.compile(rb"[1-5][0-9]{2}")
#: A quotation mark that is not escaped: an even number of backslashes stands before it.
_MARK = rb'(?<!\\)(?:\\\\)*"'
#: The end of a request, and the status if there is one.
_AFTER_REQUEST = re.compile(_MARK + rb"(?: ([1-5][0-9]{2})(?![0-9]))?")
#: The quotation marks of the combined format, what a path ends with, and what the host of an address ends with.
_QUOTE, _QUERY, _AFTER_HOST = re.compile(_MARK), re.compile(rb"[?#]"), re.compile(rb"[/?#]")
#: What stands before the path if the target is a whole address or has a user; it may tell a password.
_BEFORE_PATH = re.compile(rb"(?:[^:/?#]+://[^/?#]*|[^/?#]*@)?")
#: An address with a port, as proxies write it: 1.2.3.4:80, [::1]:80, [::1]; balancers of AWS 1:2:3:4:5:6:7:8:80.
_WITH_PORT = re.compile(
    rb"([0-9.]+|(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}):[0-9]{1,5}|\[([^]]*)\](?::[0-9]{1,5})?"
)
_LONGEST = len("10/Oct/2000:13:55:36") + 1  # bytes that are looked at in a text that begins with a time


class Fields(NamedTuple):
    """What one line contains."""

    version: int  # of the address: 4 or 6
    address: int
    day: int  # of date.toordinal()
    rest: int  # where in the line the part after the time begins
    minute: int = -1  # of the day; -1 if the line does not have it
    status: int = 0  # of the answer to a request: 100 to 599; 0 if the line does not have it


class Parts(NamedTuple):
    """What a line says about a request, as it is written; b"" for what it does not say."""

    path: bytes = b""  # without its query
    referrer: bytes = b""  # the host of the address
    agent: bytes = b""


class Format(Protocol):
    """
    A format of lines. One whose lines have a path, a referrer or an agent has two more members: *dimensions* names
    those that it has, and parts(line) returns the Parts of a line that could be read.
    """

    def read(self, line: bytes) -> Fields | Reason:
        """Return what a line contains, or why it cannot be read. The line is not empty, and has no newline."""


@dataclass(frozen=True)
class Book:
    """`173.194.38.137 2011-10-10 13:55:36 achievement-762`: the rest begins after the day, at the time if any."""

    def read(self, line: bytes) -> Fields | Reason:
        address, found, rest = line.partition(b" ")
        if not found:
            return Reason.FORMAT
        after = rest[10:11]
        day = iso_day(rest[:10]) if after in (b"", b" ") else None
        return _fields(address, day, len(address) + 11 + len(after), _minute(rest[11:16]))


@dataclass(frozen=True)
class Combined:
    """
    `1.2.3.4 - frank [10/Oct/2000:13:55:36 -0700] "GET / …`, of Apache and nginx; the rest begins with the request.

    The time ends at the first `] "`, and begins at the last `[` before that. Visitors choose the user's name, which
    may have blanks and brackets in it, but servers escape quotation marks; so nobody can forge the day on which they
    are counted. The second may have a fraction, and the zone may be `+0200`, `+02:00`, `Z` or missing. All of it must
    be a time: `[10/Oct/2000:99:99:99 ABCDE]` is not. The status follows the first quotation mark of the request that
    is not escaped: of backslashes before it, an even number escapes nothing. The referrer and the agent are between
    the next two pairs of such marks.
    """

    dimensions: ClassVar[Sequence[str]] = Parts._fields

    def read(self, line: bytes) -> Fields | Reason:
        first = line.find(b" ")
        close = line.find(b'] "', first + 1)
        if first < 0 or close < 0:
            return Reason.FORMAT
        at = line.rfind(b"[", first + 1, close)
        is_begun = at > first and line[at - 1 : at] == b" "
        found = _WEB_TIME.fullmatch(line, at + 1, close) if is_begun else None
        if found is None:
            return _fields(line[:first], None, close + 2)
        minute = _minute(line[found.end(1) + 1 : found.end(1) + 6])
        return _fields(line[:first], web_day(found[1]), close + 2, minute, _status_of(line, close + 3))

    def parts(self, line: bytes) -> Parts:
        request = line.find(b'] "', line.find(b" ") + 1) + 2
        marks = [found.end() - 1 for found in islice(_QUOTE.finditer(line, request), 6)]
        texts = [line[opens + 1 : closes] for opens, closes in zip(marks[::2], marks[1::2], strict=False)]
        request_line, *others = (*texts, b"", b"", b"")[:3]
        return _parts(request_line.split(b" ")[1] if b" " in request_line else b"", *others)


@dataclass(frozen=True)
class JsonLines:
    """
    A JSON object in each line. Keys may lead into nested objects: "request.client_ip". The rest is the whole line.

    Of a list, such as Caddy makes of headers, the first value counts; so does the first address of X-Forwarded-For. A
    number after the key names another one: "headers.X-Forwarded-For.-1" is the last. A port is left out.

    The time is text that begins with a day such as 2011-10-10 or 10/Oct/2011, or a number of seconds since 1970,
    whose day is taken in UTC. Hours, minutes and seconds after the day must be valid. The status is a number or text;
    it may be missing, and so may the path, the referrer and the agent, which are texts.
    """

    address: str = "ip"
    time: str = "time"
    status: str = "status"
    path: str = "path"
    referrer: str = "referrer"
    agent: str = "agent"

    dimensions: ClassVar[Sequence[str]] = Parts._fields

    def read(self, line: bytes) -> Fields | Reason:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested too deeply for Python
            return Reason.FORMAT
        address, time = _find(found, self.address), _find(found, self.time)
        if address is None or time is None:
            return Reason.FORMAT
        text = address.encode(errors="replace") if isinstance(address, str) else b""
        day, minute = _time_of(time)
        return _fields(_client(text), day, 0, minute, _status(_find(found, self.status)))

    def parts(self, line: bytes) -> Parts:
        found = json.loads(line)
        values = (_find(found, each) for each in (self.path, self.referrer, self.agent))
        return _parts(*(each.encode(errors="replace") if isinstance(each, str) else b"" for each in values))


@dataclass(frozen=True)
class Pattern:
    """
    A regular expression with groups named `ip` and `time`, which matches at the beginning of the line. Groups named
    `status`, `path`, `referrer` and `agent` are optional. The time is text as in JsonLines. The rest is what follows
    the match.
    """

    expression: str

    def __post_init__(self) -> None:
        try:
            groups = self._compiled.groupindex
        except (re.error, UnicodeEncodeError) as error:
            raise InvalidValue(f"{self.expression!r} is not a regular expression: {error}.") from error
        if missing := {"ip", "time"} - groups.keys():
            needs = " and ".join(f"(?P<{name}>…)" for name in sorted(missing))
            raise InvalidValue(f"{self.expression!r} lacks the group {needs}.")

    @property
    def _compiled(self) -> re.Pattern[bytes]:
        return re.compile(self.expression.encode())  # re remembers it

    def read(self, line: bytes) -> Fields | Reason:
        text = line.removeprefix(BOM_UTF8)
        match = self._compiled.match(text)
        if match is None:
            return Reason.FORMAT
        day, minute = _written(match["time"] or b"")
        status = _status(match["status"]) if "status" in self._compiled.groupindex else 0
        rest = len(line) - len(text) + match.end()
        return _fields(_client(match["ip"] or b""), day, rest, minute, status)

    @property
    def dimensions(self) -> Sequence[str]:
        return [each for each in Parts._fields if each in self._compiled.groupindex]

    def parts(self, line: bytes) -> Parts:
        match = self._compiled.match(line.removeprefix(BOM_UTF8))
        groups = match.groupdict(b"") if match else {}
        return _parts(*(groups.get(each, b"") for each in Parts._fields))


FORMATS: dict[str, Callable[[], Format]] = {"book": Book, "combined": Combined, "json": JsonLines}


def find_format(name: str) -> Format:
    """Return the format of this name, with its defaults. Raises InvalidValue."""
    if name not in FORMATS:
        raise InvalidValue(f"There is no format {name!r}; there are: {', '.join(FORMATS)}.")
    return FORMATS[name]()


def _parts(target: bytes, referrer: bytes, agent: bytes) -> Parts:
    """
    Return the path of *target*, the host of *referrer*, and *agent*. A query, a user and a password may be secret: no
    part has them.
    """
    path = _QUERY.split(_BEFORE_PATH.sub(b"", target, count=1), maxsplit=1)[0]
    host = _AFTER_HOST.split(referrer.partition(b"://")[2] or referrer, maxsplit=1)[0].rpartition(b"@")[2]
    return Parts(*map(_some, (path, host, agent)))


def _some(text: bytes) -> bytes:
    """Return the text; b"" for "-", as servers write what there is none of."""
    return b"" if text == b"-" else text


def _fields(address: bytes, day: int | None, rest: int, minute: int = -1, status: int = 0) -> Fields | Reason:
    found = parse_address(address)
    if found is None:
        return Reason.ADDRESS
    return Fields(*found, day, rest, minute, status) if day else Reason.DATE


@lru_cache(_DAYS)
def iso_day(text: bytes) -> int | None:
    """Return `2011-10-10` as a number, or None if there is no such day."""
    found = _ISO.fullmatch(text)
    return found and _day(int(found[1]), int(found[2]), int(found[3]))


@lru_cache(_DAYS)
def web_day(text: bytes) -> int | None:
    """Return `10/Oct/2011` as a number, or None if there is no such day."""
    found = _WEB.fullmatch(text)
    if found is None or found[2] not in _MONTHS:
        return None
    return _day(int(found[3]), _MONTHS.index(found[2]) + 1, int(found[1]))


def _day(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal()
    except ValueError:
        return None


def _minute(clock: bytes) -> int:
    """Return the minute of the day of a text such as `13:55`; -1 if it is no such text."""
    found = _HOUR_AND_MINUTE.fullmatch(clock)
    return int(found[1]) * 60 + int(found[2]) if found else -1


def _status_of(line: bytes, start: int) -> int:
    """Return the status after the request that begins at *start*; 0 if there is none."""
    found = _AFTER_REQUEST.search(line, start)
    return int(found[1] or 0) if found else 0


def _status(found: Any) -> int:
    if isinstance(found, str) or type(found) is int:
        found = str(found).encode(errors="replace")
    return int(found) if isinstance(found, bytes) and _STATUS.fullmatch(found) else 0


def _written(time: bytes) -> tuple[int | None, int]:
    """
    Return the day with which a time begins, and the minute of the day, or -1. There is no day if a digit or an
    invalid time of the day follows it.
    """
    length = 10 if b"-" in time[:10] else 11
    clock = time[length:_LONGEST]
    is_clock = _CLOCK.match(clock)
    if clock[:1].isdigit() or (is_clock and not _GOOD_CLOCK.match(clock)):
        return None, -1
    day = iso_day(time[:10]) if length == 10 else web_day(time[:11])
    return day, _minute(clock[1:6]) if is_clock else -1


def _time_of(time: Any) -> tuple[int | None, int]:
    """Return the day and the minute of the day, or -1, of a value in JSON."""
    if isinstance(time, str):
        return _written(time[:_LONGEST].encode(errors="replace"))
    if isinstance(time, bool) or not isinstance(time, int | float):
        return None, -1
    try:
        found = datetime.fromtimestamp(time, UTC)
    except (ValueError, OverflowError, OSError):  # no such year
        return None, -1
    return found.toordinal(), found.hour * 60 + found.minute


def _find(found: Any, path: str) -> Any:
    """Return the value to which *path* leads, and of a list the first one; None if there is none."""
    for key in [path] if isinstance(found, dict) and path in found else path.split("."):
        found = found.get(key) if isinstance(found, dict) else _at(found, key)
    while isinstance(found, list):
        found = found[0] if found else None
    return found


def _at(found: Any, key: str) -> Any:
    """Return the value with the number *key* of a list, or of texts that commas separate; None if there is none."""
    if isinstance(found, list) and all(isinstance(each, str) for each in found):
        found = ",".join(found)
    values = found.split(",") if isinstance(found, str) else found
    try:
        return values[int(key)] if isinstance(values, list) else None
    except (ValueError, IndexError):
        return None


def _client(address: bytes) -> bytes:
    """Return the first address of those that commas separate, without its port."""
    first = address.partition(b",")[0].strip(b" ")
    found = _WITH_PORT.fullmatch(first)
    return found[1] or found[2] or b"" if found else first
