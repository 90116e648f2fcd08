"""FrozenRow: a cached row with the names of its model's fields. It cannot be changed or saved."""

from collections.abc import Iterable
from pickle import UnpicklingError
from typing import Any, ClassVar, NoReturn, Self

from components.services.rows import Row

#: All CachedRows by their names; a pickled row finds its own here.
declared: dict[str, Any] = {}


class FrozenRow:
    """
    The values of a row as attributes, by the names of the columns: owner_id for a foreign key owner. *cached* says
    when it was loaded and how old it is. Reading a field that is not cached raises AttributeError; it never starts a
    query.
    """

    __slots__ = ("cached",)

    cached: Row
    _label: ClassVar[str]
    _name: ClassVar[str]

    def __init__(self, row: Row) -> None:
        _set_row(self, row)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{name!r} is not cached of {self._label}; cached are: {', '.join(self.cached)}."
            if name != "cached"
            else "This row has not been made."
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} is a cached row, which cannot be changed: get the instance itself.")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise TypeError."""
        raise TypeError(f"{self!r} is a cached row, which cannot be saved: get the instance itself.")

    delete = save

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenRow):
            return NotImplemented
        return (self._label, self.cached.key, self.cached) == (other._label, other.cached.key, other.cached)

    def __hash__(self) -> int:
        return hash((self._label, self.cached.key))

    def __copy__(self) -> Self:
        return self  # which nobody can change

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._name, *self.cached._parts)

    def __repr__(self) -> str:
        return f"<{self._label} {self.cached.key}, {self.cached.age:.3f} s old>"


#: Sets the slot, bypassing __setattr__, which refuses changes.
_set_row = FrozenRow.__dict__["cached"].__set__


def _restored(name: str, *parts: Any) -> object:
    """Return a row that was pickled, perhaps by another process. Raises UnpicklingError."""
    rows = declared.get(name)
    if rows is None or parts[2][2] != rows.shape.fingerprint:
        raise UnpicklingError(
            f"The row {name}:{parts[0]} was pickled with other columns: read it from the cache."
        )
    return rows._frozen_class(Row(rows.shape, *parts))


def frozen_class(label: str, name: str, names: Iterable[str]) -> type[FrozenRow]:
    """
    Return the class for the rows called *name* of a model. A column named like a method, such as save, is read as
    row.cached["save"].
    """
    columns = {each: _column(each) for each in names if not hasattr(FrozenRow, each)}
    facts = {"__slots__": (), "_label": label, "_name": name}
    return type(f"Frozen{label.rpartition('.')[2]}", (FrozenRow,), facts | columns)


def _column(name: str) -> property:
    return property(lambda frozen: frozen.cached[name])
