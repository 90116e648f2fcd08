"""
Shape: the columns of a row, their kinds, and their form as JSON; and Row, which reads them back.

JSON has text, numbers, true, false and null. All other values are written as text or numbers, and the kind records
the original type: microseconds are preserved, a Decimal does not become a float, and bytes come back as bytes. A
value that would change is refused when it is written.

The fingerprint of a shape is stored with each row. A reader whose model has other columns by now, or columns of
another kind, treats the row as missing, and never mistakes one column for another. Therefore a migration needs no
flush, and two releases can run at the same time, although each reloads the rows that the other has stored.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from hashlib import blake2s
from typing import Any, NoReturn
from uuid import UUID

from components.exceptions import InvalidValue, RowNotSerializable, RowTooLarge
from components.kit.decoding import changed_by_json, instant_of, is_too_deep, too_deep

#: The most bytes of a row as JSON. Every reader transfers them from Redis, so larger data belong elsewhere.
MAX_ROW = 1_000_000
_MOST = 2_000  # columns, which is above what any database has
_FORMAT = 1  # of what is stored; part of each fingerprint
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Kind:
    """A way to write and read values. Neither function ever gets None. *name* is part of a row's shape."""

    name: str
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    #: Values of exactly this type are written as they are.
    plain: type | None = None


def as_is(value: Any) -> Any:
    return value


def _copied(value: Any) -> Any:
    """Return a copy of nested JSON, which its reader may change."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _finite(value: float) -> float | str:
    """Return the JSON value for a float: NaN and infinity become text. Raises ValueError for one that is rounded."""
    if isinstance(value, int) and float(value) != value:
        raise ValueError(f"{value!r} has more digits than a float")
    return float(value) if math.isfinite(value) else repr(float(value))


def _day(value: date) -> str:
    if isinstance(value, datetime):
        raise TypeError(f"{value!r} is a datetime, whose time would be lost")
    return date.isoformat(value)


def _of_type(*types: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, types):
            wanted = " or ".join(kind.__name__ for kind in types)
            raise TypeError(f"{value!r} is {type(value).__name__}, not {wanted}")
        return value

    return check


def _truth(value: Any) -> bool:
    if _of_type(bool, int)(value) not in (0, 1):
        raise ValueError(f"{value!r} is neither True nor False")
    return bool(value)


#: Aware times keep only their offset, as in ISO 8601, which is enough to distinguish instants.
_KINDS = (
    Kind("text", _of_type(str), as_is, str),
    Kind("integer", _of_type(int), as_is, int),  # of any size, because Python's JSON does not round integers
    Kind("boolean", _truth, bool, bool),
    Kind("float", _finite, float),
    Kind("decimal", lambda value: str(_of_type(Decimal)(value)), Decimal),
    Kind("datetime", datetime.isoformat, datetime.fromisoformat),
    Kind("date", _day, date.fromisoformat),
    Kind("time", time.isoformat, time.fromisoformat),
    Kind("duration", lambda value: value // _MICROSECOND, lambda number: number * _MICROSECOND),
    Kind("uuid", lambda value: value.hex, UUID),
    Kind("bytes", lambda value: base64.b64encode(value).decode("ascii"), base64.b64decode),
    Kind("json", as_is, _copied),
)
KINDS = {kind.name: kind for kind in _KINDS}
#: Kinds whose values may be nested: plain JSON, or the output of a field's own encoder.
_DOCUMENTS = frozenset({"json", "json text"})


def list_of(kind: Kind) -> Kind:
    """Return the kind of lists of such values, in which None is allowed; list_of(list_of(…)) for lists of lists."""
    return Kind(
        f"list of {kind.name}",
        lambda values: [None if each is None else kind.encode(each) for each in values],
        lambda values: [None if each is None else kind.decode(each) for each in values],
    )


#: NaN is not JSON: a row that has it in a "json" is refused.
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class Shape:
    """
    The *columns* of a row: the name and the kind of each, which is a Kind or the name of one in KINDS. *note*
    distinguishes shapes that have the same kinds, such as those of two tables. Raises InvalidValue.
    """

    def __init__(self, columns: Sequence[tuple[str, str | Kind]], *, note: str = "") -> None:
        self.names = tuple(name for name, _kind in columns)
        self.kinds = tuple(_kind_of(name, kind) for name, kind in columns)
        self._note = note
        if len(set(self.names)) < len(self.names) or not 1 <= len(self.names) <= _MOST:
            raise InvalidValue(
                f"The columns are {list(self.names)[:20]}; a row has 1 to {_MOST:,} of them, "
                "each with a name of its own."
            )
        #: The functions that restore the value of each column, unless it is None.
        self.decoders = tuple(kind.decode for kind in self.kinds)
        numbered = list(enumerate(zip(self.names, self.kinds, strict=True)))
        self._documents = [(at, name) for at, (name, kind) in numbered if kind.name in _DOCUMENTS]
        self._converted = [
            (at, name, kind.plain, kind.encode) for at, (name, kind) in numbered if kind.encode is not as_is
        ]

    @cached_property
    def places(self) -> dict[str, int]:
        """Return the position of each column's value."""
        return {name: at for at, name in enumerate(self.names)}

    @cached_property
    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits, the same in each process that knows the same columns."""
        columns = [[name, kind.name] for name, kind in zip(self.names, self.kinds, strict=True)]
        text = _dumps([_FORMAT, self._note, columns])
        return blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    @property
    def deleted(self) -> str:
        """Return the text that is stored for a row that the database no longer has."""
        return f'"{self.fingerprint}",null'

    def encode(self, key: str, values: Sequence[Any]) -> str:
        """
        Return what is stored for the row *key* with these values, by column. Raises RowNotSerializable, RowTooLarge.
        """
        if len(values) != len(self.names):
            raise RowNotSerializable(f"The row {key} has {len(values)} values for {len(self.names)} columns.")
        written = list(values)
        for at, name in self._documents:
            if is_too_deep(written[at]):
                raise RowNotSerializable(too_deep(f"{name} of the row {key} cannot be cached: its values"))
            if changed := changed_by_json(written[at], tuples=True):
                raise RowNotSerializable(f"{name} of the row {key} cannot be cached: it holds {changed}.")
        for at, name, plain, encode in self._converted:
            if written[at] is not None and type(written[at]) is not plain:
                try:
                    written[at] = encode(written[at])
                except Exception as error:
                    raise RowNotSerializable(f"{name} of the row {key} cannot be cached: {error}.") from error
        try:
            body = f'"{self.fingerprint}",{_dumps(written)}'
            size = len(body) if body.isascii() else len(body.encode())
        except Exception as error:  # half a surrogate pair, too deep, or an error of the value's class
            raise RowNotSerializable(f"The row {key} cannot be written as JSON: {error}.") from error
        if size > MAX_ROW:
            raise RowTooLarge(
                f"The row {key} has {size:,} bytes as JSON, above {MAX_ROW:,}. Leave its large columns out of "
                "the cached fields."
            )
        return body


def _kind_of(name: object, kind: str | Kind) -> Kind:
    if not isinstance(name, str) or not name:
        raise InvalidValue(f"A column is called {name!r}; its name is text.")
    found = kind if isinstance(kind, Kind) else KINDS.get(kind)
    if found is None:
        raise InvalidValue(f"The column {name!r} is of the kind {kind!r}; known are: {', '.join(KINDS)}.")
    return found


class Row(Mapping[str, Any]):
    """
    A row as it was when it was loaded: its typed values by the names of its columns. It cannot be changed. A deleted
    row has no values. A value is converted when it is read, because most values never are.
    """

    __slots__ = ("_now", "_shape", "_stored", "key")

    def __init__(self, shape: Shape, key: str, now: int, stored: Sequence[Any]) -> None:
        self.key = key
        self._shape, self._now = shape, now
        #: As in JSON: when it was loaded, until when it is good, its shape, its values or None.
        self._stored = stored

    def __getitem__(self, name: str) -> Any:
        values = self._stored[3]
        if values is None:
            raise KeyError(name)
        at = self._shape.places[name]
        value = values[at]
        return None if value is None else self._shape.decoders[at](value)

    def __iter__(self) -> Iterator[str]:
        return iter(() if self._stored[3] is None else self._shape.names)

    def __len__(self) -> int:
        return 0 if self._stored[3] is None else len(self._stored[3])

    def __deepcopy__(self, memo: object) -> Row:
        return self  # which nobody can change

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: pickle dict(row), or the cached row of a model.")

    def __repr__(self) -> str:
        return f"<Row {self.key}{' deleted' if self.is_deleted else ''}, {self.age:.3f} s old>"

    @property
    def _parts(self) -> tuple[str, int, Sequence[Any]]:
        """Return what Row() takes besides the shape."""
        return self.key, self._now, self._stored

    @property
    def is_deleted(self) -> bool:
        """Return True if the database had no such row."""
        return self._stored[3] is None

    @property
    def since(self) -> int:
        """Return loaded_at in microseconds since 1970, which grows with each load of the row."""
        return int(self._stored[0])

    @property
    def loaded_at(self) -> datetime:
        """Return when its load began. The row has everything that was committed before."""
        return instant_of(self.since / 1_000)

    @property
    def age(self) -> float:
        """Return the seconds from the beginning of its load until it was read, both by the server's clock."""
        return max(0, self._now - self.since) / 1e6

    @property
    def is_stale(self) -> bool:
        """Return True if it should have been reloaded before it was read, which only readers with *stale* get."""
        return bool(self._stored[1] <= self._now)
