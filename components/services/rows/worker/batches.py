"""Batch: what becomes of the cached rows that a daemon has claimed, and where it finds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from components.exceptions import RowNotSerializable, RowTooLarge
from components.services.rows import Claims, Shape, Stored, member, name_and_key


class Loaded(Protocol):
    """What became of the rows that were asked for: those in neither are deleted."""

    values: dict[str, Sequence[Any]]
    errors: dict[str, str]


class Source(Protocol):
    """Where the rows of one name come from."""

    @property
    def shape(self) -> Shape: ...

    def load_all(self, keys: Sequence[str]) -> Loaded:
        """Raises RowsUnavailable."""


@dataclass
class Batch:
    """What is to be stored, and what is not, by member."""

    rows: dict[str, Stored] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def fail(self, name: str, keys: Sequence[str], error: str) -> None:
        self.errors.update((member(name, key), error) for key in keys)

    def take(self, name: str, keys: Sequence[str], shape: Shape, loaded: Loaded) -> None:
        for key in keys:
            each = member(name, key)
            if key in loaded.errors:
                self.errors[each] = loaded.errors[key]
            elif key not in loaded.values:
                self.rows[each] = Stored(False, shape.deleted)
            else:
                try:
                    self.rows[each] = Stored(True, shape.encode(each, loaded.values[key]))
                except (RowNotSerializable, RowTooLarge) as error:
                    self.errors[each] = str(error)


def by_name(claims: Claims) -> dict[str, list[str]]:
    """The keys of what is claimed."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for claim in claims.claims:
        for each in claim.members:
            name, key = name_and_key(each)
            keys[name].append(key)
    return keys
