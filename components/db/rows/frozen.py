"""FrozenRow: a cached row with the names of its model's fields. It cannot be changed or saved."""

from __future__ import annotations

from typing import Any, NoReturn

from components.services.rows import Row


class FrozenRow:
    """
    The values of a row as attributes, by the names of the columns: owner_id for a foreign key owner.

    *cached* says when it was loaded and how old it is. What was not cached is an AttributeError, not a query.
    """

    __slots__ = ("_label", "cached")

    cached: Row
    _label: str

    def __init__(self, label: str, row: Row) -> None:
        object.__setattr__(self, "_label", label)
        object.__setattr__(self, "cached", row)

    def __getattr__(self, name: str) -> Any:
        if name in FrozenRow.__slots__:  # of one that is not yet made
            raise AttributeError(name)
        try:
            return self.cached[name]
        except KeyError:
            raise AttributeError(
                f"{name!r} is not cached of {self._label}; cached are: {', '.join(self.cached)}."
            ) from None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} is a cached row, which cannot be changed: get the instance itself.")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises TypeError."""
        raise TypeError(f"{self!r} is a cached row, which cannot be saved: get the instance itself.")

    delete = save

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenRow):
            return NotImplemented
        return self._label == other._label and self.cached == other.cached

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._label} {self.cached.key}, {self.cached.age:.3f} s old>"
