"""
Kinds of values: how each is written as JSON, and read back as it was.

JSON knows text, numbers, true, false and null. All else is written as text or a number, and the shape of the row says
what it was (shapes.py): microseconds stay, a Decimal is not a float, bytes come back as bytes. A value that would
come back as another is refused where it is written, so that nobody reads it.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Kind:
    """How values are written and read. Neither is ever given None. *name* is part of a row's shape."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    #: Values of just this type are written as they are.
    plain: type | None = None


def as_is(value: Any) -> Any:
    return value


def _finite(value: float) -> float | str:
    """JSON has no numbers that are none, or endless."""
    return float(value) if math.isfinite(value) else repr(float(value))


def _base64(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(value).decode("ascii")


def _decimal(value: Any) -> str:
    return str(_of_type(Decimal)(value))


def _of_type(*types: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, types):
            wanted = " or ".join(kind.__name__ for kind in types)
            raise TypeError(f"{value!r} is {type(value).__name__} and not {wanted}")
        return value

    return check


#: Of an aware time only the offset is kept, as in ISO 8601: all that tells instants apart.
_KINDS = (
    Kind("text", _of_type(str), as_is, str),
    Kind("integer", _of_type(int), as_is, int),  # of any size: Python's JSON rounds none
    Kind("boolean", _of_type(bool, int), bool, bool),
    Kind("float", _finite, float),
    Kind("decimal", _decimal, Decimal),
    Kind("datetime", datetime.isoformat, datetime.fromisoformat),
    Kind("date", date.isoformat, date.fromisoformat),
    Kind("time", time.isoformat, time.fromisoformat),
    Kind("duration", lambda value: value // _MICROSECOND, lambda number: number * _MICROSECOND),
    Kind("uuid", lambda value: value.hex, UUID),
    Kind("bytes", _base64, base64.b64decode),
    Kind("json", as_is, as_is),
)
KINDS = {kind.name: kind for kind in _KINDS}
#: Kinds of which the values may be nested, as JSON, or as JSON that an encoder of its own makes.
DOCUMENTS = frozenset({"json", "json text"})


def list_of(kind: Kind) -> Kind:
    """Lists of such values, or None among them; also lists of lists, by list_of(list_of(...))."""
    return Kind(
        f"list of {kind.name}",
        lambda values: [None if each is None else kind.encode(each) for each in values],
        lambda values: [None if each is None else kind.decode(each) for each in values],
    )


#: NaN is no JSON: a row that has it in a "json" is refused.
dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
