"""
Source: rows of a model, by their keys, one query for all of them.

A row that lets the query fail is found by halving: it alone is an error, and the others are there. A database that
does not answer is no error of any row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.core.exceptions import FieldDoesNotExist, ImproperlyConfigured, ValidationError
from django.db import InterfaceError, OperationalError, ProgrammingError, connections, models, router
from django.db.models import F, Lookup, Q

from components.exceptions import InvalidName, RowsUnavailable
from components.services.rows import Shape
from components.services.rows.members import parts
from components.services.rows.models.fields import kind_of
from components.services.rows.models.lookups import AnyOf

#: Never cached, unless they are asked for by name.
_SECRET = {"password"}
_IN_QUERY = 30_000  # parameters: SQLite takes 32,766 of them, PostgreSQL 65,535


@dataclass
class Loaded:
    """The values of the rows that there are, by key; and why others could not be loaded."""

    values: dict[str, Sequence[Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class Source:
    """The rows of *model*, by the unique field *key*, with these *fields* (None: all but passwords)."""

    def __init__(
        self, model: type[models.Model], *, fields: Sequence[str] | None, key: str, using: str | None
    ) -> None:
        self.model, self._names, self._key_name, self._using = model, fields, key, using

    @property
    def database(self) -> str:
        """Its alias: by default that of writes, since a replica may be behind what a row was before."""
        return self._using or router.db_for_write(self.model)

    @property
    def key_name(self) -> str:
        return self._key_name

    @property
    def is_known_by_pk(self) -> bool:
        return self._key_name in ("pk", self.model._meta.pk.name)

    @property
    def names_its_fields(self) -> bool:
        """Somebody has said which are cached."""
        return self._names is not None

    @cached_property
    def key_column(self) -> models.Field[Any, Any]:
        """The unique field whose values the keys are. Raises ImproperlyConfigured."""
        meta = self.model._meta
        [found] = self._find([self._key_name])
        if not found.unique:
            raise ImproperlyConfigured(
                f"{meta.label}.{self._key_name} is not unique: it cannot be the key of its rows."
            )
        return found

    @cached_property
    def key_field(self) -> models.Field[Any, Any]:
        """The field that knows of what type the keys are: what key_column points at, if it is a relation."""
        found = self.key_column
        while found.is_relation:
            found = found.target_field  # type: ignore[attr-defined]
        return found

    @cached_property
    def _has_whole_keys(self) -> bool:
        return type(self.key_field).to_python is models.IntegerField.to_python

    @cached_property
    def fields(self) -> list[models.Field[Any, Any]]:
        """What is cached. Raises ImproperlyConfigured."""
        meta = self.model._meta
        if self._names is None:
            return [each for each in meta.concrete_fields if each.name not in _SECRET]
        if isinstance(self._names, str):
            raise ImproperlyConfigured(
                f"Cached rows of {meta.label}: the fields are the text {self._names!r} and no list."
            )
        return self._find(self._names)

    def _find(self, names: Sequence[str]) -> list[models.Field[Any, Any]]:
        meta = self.model._meta
        try:
            found = [meta.pk if name == "pk" else meta.get_field(name) for name in names]
        except FieldDoesNotExist as error:
            raise ImproperlyConfigured(f"Cached rows of {meta.label}: {error}.") from None
        columns = [each for each in found if isinstance(each, models.Field) and each.column]
        if len(columns) < len(found):
            raise ImproperlyConfigured(
                f"Cached rows of {meta.label}: one of {', '.join(names)} has no column."
            )
        return columns

    @cached_property
    def shape(self) -> Shape:
        note = f"{self.model._meta.db_table} by {self._key_name}"
        return Shape([(each.attname, kind_of(each)) for each in self.fields], note=note)

    def key(self, value: Any) -> str:
        """*value* of the key field as text, in the one way it is written. Raises InvalidName."""
        if type(value) is int and self._has_whole_keys:
            return str(value)  # most are so, and a page reads many
        try:
            found = self.key_field.to_python(value)
        except (ValidationError, TypeError, ValueError, OverflowError):
            found = None
        if found is None:
            raise InvalidName(f"A row of {self.model._meta.label} cannot have the key {value!r}.")
        return _written(found)

    def load(self, keys: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        """The values of those that there are, in one query for 30,000 of them. Raises what that raises."""
        if not keys:
            return {}
        # By their values, since a database may write them in another way.
        wanted = {self.key_field.to_python(key): key for key in keys}
        columns = [each.attname for each in self.fields]
        rows = self.model._base_manager.using(self.database).order_by().values_list(self._key_name, *columns)
        found = (row for some in parts(wanted, _IN_QUERY) for row in rows.filter(self._among(some)))
        return {wanted[key]: values for key, *values in found if key in wanted}

    def _among(self, values: Sequence[Any]) -> Lookup[Any] | Q:
        if self._has_whole_keys and connections[self.database].vendor == "postgresql":
            return AnyOf(F(self._key_name), values)
        return Q(**{f"{self._key_name}__in": values})

    def load_all(self, keys: Sequence[str]) -> Loaded:
        """The same, and what is wrong with those that cannot be loaded. Raises RowsUnavailable."""
        loaded = Loaded()
        self._load_into(loaded, [key for key in keys if self._can_be(key, loaded)])
        return loaded

    def _load_into(self, loaded: Loaded, keys: Sequence[str]) -> None:
        try:
            loaded.values.update(self.load(keys))
        except (OperationalError, InterfaceError) as error:
            connections[self.database].close()
            raise RowsUnavailable(
                f"{self.model._meta.label}: the database does not answer: {error}"
            ) from error
        except Exception as error:  # noqa: BLE001  (whatever a field makes of what it finds: told, of its row)
            if len(keys) == 1 or isinstance(error, ProgrammingError):  # that of a table without a column
                loaded.errors.update(dict.fromkeys(keys, f"{type(error).__name__}: {error}"))
                return
            half = len(keys) // 2
            for some in (keys[:half], keys[half:]):
                self._load_into(loaded, some)

    def _can_be(self, key: str, loaded: Loaded) -> bool:
        """Whether it can be the key of a row; it may stem from another release, of which the key was another."""
        try:
            if self.key(key) == key:
                return True
        except InvalidName:
            pass
        loaded.errors[key] = f"{key!r} is no key of {self.model._meta.label}"
        return False


def _written(key: Any) -> str:
    """A key as text, the same for all that are equal: 1.00 and 1, noon here and noon there."""
    if isinstance(key, Decimal) and key.is_finite():
        text = format(key, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(key, datetime) and key.tzinfo:
        return str(key.astimezone(UTC))
    return str(key)
