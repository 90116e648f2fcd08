"""Redis' protocol: commands are packed and answers are read by hiredis, or in Python where that is not installed."""

from collections.abc import Callable
from typing import Any

from redis.exceptions import InvalidResponse

__all__ = ["MORE", "Push", "new_reader", "pack_command"]

#: What gets() of a reader returns when the rest of an answer is still to come.
MORE = object()

try:
    from hiredis import PushNotification as Push
    from hiredis import Reader, pack_command
except ImportError:

    class Push(list):  # type: ignore[no-redef,type-arg]
        """What the server says unasked."""

    def pack_command(cmd: tuple[Any, ...]) -> Any:  # type: ignore[misc]  # for redis-py to do
        raise TypeError

    Reader = None  # type: ignore[assignment,misc]


def new_reader(parse_error: Callable[[str], Exception]) -> Any:
    """Return an object to which bytes are fed, and that gets answers of them. Raises InvalidResponse."""
    if Reader is None:
        return PlainReader(parse_error)
    return Reader(protocolError=InvalidResponse, replyError=parse_error, notEnoughData=MORE)


class PlainReader:
    """Does what hiredis' reader does, for all types of RESP2 and RESP3."""

    def __init__(self, parse_error: Callable[[str], Exception]) -> None:
        self._parse_error = parse_error
        self._data, self._at = bytearray(), 0

    def feed(self, data: bytes) -> None:
        self._data += data

    def gets(self) -> Any:
        self._at = 0
        try:
            found = self._read()
        except EOFError:
            return MORE
        del self._data[: self._at]
        return found

    def _take(self, end: int, after: int) -> bytes:
        """Return the bytes up to *end*, and skip the line's end of so many bytes *after* them."""
        if end < 0 or end + after > len(self._data):
            raise EOFError
        start, self._at = self._at, end + after
        return bytes(self._data[start:end])

    def _read(self) -> Any:
        line = self._take(self._data.find(b"\r\n", self._at), 2)
        kind, rest = line[:1], line[1:]
        try:
            if kind in b"$!=":  # a text, an error, a text after its format
                text = None if rest == b"-1" else self._take(self._at + int(rest), 2)
                return self._parse_error((text or b"").decode()) if kind == b"!" else text
            if kind in b"*~>":
                some = [self._read() for _ in range(int(rest))]
                return Push(some) if kind == b">" else None if rest == b"-1" else some
            if kind == b"%":
                return {self._read(): self._read() for _ in range(int(rest))}
            return self._PLAIN[kind](self, rest)
        except (KeyError, ValueError):
            raise InvalidResponse(f"Protocol error: {line[:100]!r}") from None

    _PLAIN: dict[bytes, Callable[["PlainReader", bytes], Any]] = {
        b"+": lambda self, rest: rest,
        b"-": lambda self, rest: self._parse_error(rest.decode(errors="replace")),
        b":": lambda self, rest: int(rest),
        b"(": lambda self, rest: int(rest),
        b",": lambda self, rest: float(rest),
        b"#": lambda self, rest: rest == b"t",
        b"_": lambda self, rest: None,
    }
