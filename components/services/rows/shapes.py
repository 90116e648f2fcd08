"""
Shape: which values a row has and of which kinds, and a fingerprint of that.

The fingerprint is stored with each row. A reader whose model has other columns by now, or columns of another kind,
does not know the row, as if it were not there: it never takes one column for another. So a migration needs no
flushing, and two releases can run beside each other, if at the price of loading rows anew whenever they take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2s
from typing import Any

from components.exceptions import InvalidShape, RowNotSerializable, RowTooLarge
from components.kit.stored import is_too_deep, too_deep
from components.services.rows.values import DOCUMENTS, KINDS, Kind, as_is, dumps

#: Bytes of a row as JSON: larger things belong elsewhere. Each reader of it takes so many off Redis.
MAX_ROW = 1_000_000
_MOST = 2_000  # columns, which is above what any database has
_FORMAT = 1  # of what is stored; part of each fingerprint


class Shape:
    """
    The *columns*: name and kind of each, a name of values.KINDS or a Kind. *note* tells apart what kinds do not, such
    as the table. Raises InvalidShape.
    """

    def __init__(self, columns: Sequence[tuple[str, str | Kind]], *, note: str = "") -> None:
        self.names = tuple(name for name, _kind in columns)
        self.kinds = tuple(_kind_of(name, kind) for name, kind in columns)
        self._note = note
        if len(set(self.names)) < len(self.names) or not 1 <= len(self.names) <= _MOST:
            raise InvalidShape(
                f"The columns are {list(self.names)[:20]}; a row has 1 to {_MOST:,} of them, "
                "each with a name of its own."
            )
        #: What gives back the value of each column, unless it is None.
        self.decoders = tuple(kind.decode for kind in self.kinds)
        self._documents = [
            (at, name)
            for at, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
            if kind.name in DOCUMENTS
        ]
        self._converted = [
            (at, name, kind.plain, kind.encode)
            for at, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
            if kind.encode is not as_is
        ]

    @cached_property
    def places(self) -> dict[str, int]:
        """Where the value of each column stands."""
        return {name: at for at, name in enumerate(self.names)}

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits, the same in each process that knows the same columns."""
        columns = [[name, kind.name] for name, kind in zip(self.names, self.kinds, strict=True)]
        text = dumps([_FORMAT, self._note, columns])
        return blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    @property
    def deleted(self) -> str:
        """What is stored of a row that is gone."""
        return f'"{self.fingerprint}",null'

    def encode(self, key: str, values: Sequence[Any]) -> str:
        """
        What is stored of the row *key* that has these values, in the order of the columns.

        Raises RowNotSerializable, RowTooLarge.
        """
        if len(values) != len(self.names):
            raise RowNotSerializable(f"The row {key} has {len(values)} values for {len(self.names)} columns.")
        written = list(values)
        for at, name in self._documents:
            if is_too_deep(written[at]):
                raise RowNotSerializable(too_deep(f"{name} of the row {key} cannot be cached: its values"))
        for at, name, plain, encode in self._converted:
            if written[at] is not None and type(written[at]) is not plain:
                try:
                    written[at] = encode(written[at])
                except Exception as error:
                    raise RowNotSerializable(f"{name} of the row {key} cannot be cached: {error}.") from error
        try:
            body = f'"{self.fingerprint}",{dumps(written)}'
            size = len(body) if body.isascii() else len(body.encode())
        except (
            Exception
        ) as error:  # half a surrogate pair, what is nested too deep, what a class of its own raises
            raise RowNotSerializable(f"The row {key} cannot be written as JSON: {error}.") from error
        if size > MAX_ROW:
            raise RowTooLarge(
                f"The row {key} has {size:,} bytes as JSON, above {MAX_ROW:,}: leave its large columns out of "
                "what is cached."
            )
        return body


def _kind_of(name: object, kind: str | Kind) -> Kind:
    if not isinstance(name, str) or not name:
        raise InvalidShape(f"A column is called {name!r}; its name is text.")
    found = kind if isinstance(kind, Kind) else KINDS.get(kind)
    if found is None:
        raise InvalidShape(f"The column {name!r} is of the kind {kind!r}; known are: {', '.join(KINDS)}.")
    return found
