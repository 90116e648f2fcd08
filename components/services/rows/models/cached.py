"""
CachedRows: the cached rows of a model, and CachedRow, a model that has them.

A reader loads missing rows itself, once for all readers that miss them. Within a transaction, it asks the database
and stores nothing, because it may see uncommitted rows, or rows as of the beginning of the transaction.

Rows are loaded by one query for all of them. A row that makes the query fail is found by halving: only that row
counts as failed, and the others are loaded. If the database does not answer, no row counts as failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast, overload

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.exceptions import FieldDoesNotExist, ImproperlyConfigured, ValidationError
from django.db import InterfaceError, OperationalError, ProgrammingError, connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Lookup, Q
from django.db.models.signals import class_prepared
from django.db.models.sql.compiler import SQLCompiler

from components.exceptions import InvalidName, RowsUnavailable
from components.kit.keyspace import parts
from components.kit.model_inheritance import home_of, note_home
from components.kit.validation import check_several
from components.services.rows import LEASE, Row, RowCache, Shape, Unshared, check_delay
from components.services.rows.loader import Loaded
from components.services.rows.models.fields import kind_of
from components.services.rows.models.frozen import FrozenRow, declared, frozen_class
from components.services.rows.models.writes import Writes

_Model = TypeVar("_Model", bound=models.Model)

#: Fields that are never cached unless they are listed by name.
_SECRET = {"password"}
_IN_QUERY = 30_000  # parameters: SQLite takes 32,766 of them, PostgreSQL 65,535


class _Uncommitted(Unshared):
    """Raised when rows would be loaded within a transaction, where they may not be shared."""


class CachedRows(Generic[_Model]):
    """
    The cached rows of *model*: the *fields* of each row (None: all but passwords), by the unique field *key*.

    A row on the schedule is loaded every *delay* seconds unless it has its own delay. A row that is not on the
    schedule is valid for *delay* seconds. *name* is their name in Redis, by default that of the model: "market.item".

    Rows are FrozenRows. Type checkers take them for instances of the model, whose fields they know.
    """

    def __init__(
        self,
        model: type[_Model],
        *,
        delay: float = 60.0,
        fields: Sequence[str] | None = None,
        key: str = "pk",
        name: str | None = None,
        using: str | None = None,
    ) -> None:
        self.model, self.key_name, self._names, self._using = model, key, fields, using
        self.name, self.delay = name or model._meta.label_lower, check_delay(delay)
        if not self.delay:
            raise ImproperlyConfigured(
                f"The rows of {self.name} have the delay {delay!r}: it must be above 0."
            )
        # A model of another registry belongs to a test, or represents a table while that is rebuilt.
        if model._meta.apps is apps:
            if self.name in declared:
                raise ImproperlyConfigured(
                    f"Two models have rows called {self.name!r}; give one of them another name."
                )
            declared[self.name] = self
        self._caches: dict[str, RowCache] = {}
        self._shapes: dict[str, Shape] = {}
        note_home(model)
        self.writes = Writes(self)

    @property
    def cache(self) -> RowCache:
        """
        Return the cache of the rows of this database. Those of another, such as a tenant's, have another shape: a
        reader that finds them loads its own.
        """
        alias = self.database
        if alias not in self._caches:
            self._caches[alias] = RowCache(self.name, self.shape)
        return self._caches[alias]

    def schedule(self, pk: Any, delay: float | None = None) -> None:
        """Schedule the row to be loaded now and every *delay* seconds, by default as declared; 0 unschedules it."""
        self.cache.schedule(self.key(pk), self.delay if delay is None else delay)

    async def aschedule(self, pk: Any, delay: float | None = None) -> None:
        """Schedule the row, as schedule() does."""
        await self.cache.aschedule(self.key(pk), self.delay if delay is None else delay)

    def schedule_many(self, pks: Iterable[Any], delay: float | None = None) -> None:
        """Schedule several rows, as schedule() does, in one round trip to each node."""
        each = self.delay if delay is None else delay
        self.cache.schedule_many({self.key(pk): each for pk in pks})

    def unschedule(self, *pks: Any) -> None:
        """Remove these rows from the schedule and the cache."""
        self.cache.unschedule(*map(self.key, pks))

    def refresh(self, *pks: Any) -> set[Any]:
        """
        Make these rows due now, as RowCache.refresh() does. Return the keys of those that are not on the schedule.
        """
        keys = {pk: self.key(pk) for pk in pks}
        absent = self.cache.refresh(*keys.values())
        return {pk for pk, key in keys.items() if key in absent}

    def invalidate(self, *pks: Any) -> None:
        """Drop these rows after a write that sends no signal. Call it after the commit."""
        self.cache.invalidate(*map(self.key, pks))

    def get(
        self, pk: Any, *, wait: float = LEASE, max_age: float | None = None, stale: bool = False
    ) -> _Model | None:
        """
        Return the row; None if it does not exist. It is loaded if it is not cached, or is older than *max_age*
        seconds. If another reader is loading it, wait for up to *wait* seconds or, with *stale*, return the old row
        if there is one. Raises RowNotLoaded, RowNotSerializable, RowTooLarge, InvalidValue, InvalidName, and
        RedisUnavailable.
        """
        return self.get_many([pk], wait=wait, max_age=max_age, stale=stale).get(pk)

    async def aget(
        self, pk: Any, *, wait: float = LEASE, max_age: float | None = None, stale: bool = False
    ) -> _Model | None:
        """Return the row, as get() does."""
        return (await self.aget_many([pk], wait=wait, max_age=max_age, stale=stale)).get(pk)

    def get_many(
        self, pks: Iterable[Any], *, wait: float = LEASE, max_age: float | None = None, stale: bool = False
    ) -> dict[Any, _Model]:
        """Return the existing rows by *pks*. Missing ones are loaded in one query. Raises what get() does."""
        wanted = {pk: self.key(pk) for pk in check_several("primary keys", pks)}
        options: dict[str, Any] = {"max_age": max_age, "stale": stale}
        # A transaction may hold database locks, so it does not wait for another reader's load.
        if self._is_within_a_transaction():
            found = self.cache.get_many(wanted.values(), **options)
            found |= self._rows(self.load([key for key in wanted.values() if key not in found]))
        else:
            found = self.cache.get_or_load(wanted.values(), self.load, delay=self.delay, wait=wait, **options)
        return self._frozen(wanted, found)

    async def aget_many(
        self, pks: Iterable[Any], *, wait: float = LEASE, max_age: float | None = None, stale: bool = False
    ) -> dict[Any, _Model]:
        """Return the existing rows, as get_many() does."""
        wanted = {pk: self.key(pk) for pk in check_several("primary keys", pks)}
        options: dict[str, Any] = {"max_age": max_age, "stale": stale}
        try:
            found = await self.cache.aget_or_load(
                wanted.values(), sync_to_async(self._load), delay=self.delay, wait=wait, **options
            )
        except _Uncommitted:
            found = await self.cache.aget_many(wanted.values(), **options)
            rest = [key for key in wanted.values() if key not in found]
            found |= self._rows(await sync_to_async(self.load)(rest))
        return self._frozen(wanted, found)

    def _load(self, keys: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        if self._is_within_a_transaction():
            raise _Uncommitted
        return self.load(keys)

    def _is_within_a_transaction(self) -> bool:
        connection = connections[self.database]
        is_open = connection.connection is not None  # cached rows are read without a database
        return connection.in_atomic_block or (is_open and not connection.autocommit)

    def _rows(self, values: Mapping[str, Sequence[Any]]) -> dict[str, Row]:
        found = {}
        for key, each in values.items():
            found[key] = Row(self.shape, key, 0, json.loads(f"[0,1,{self.shape.encode(key, each)}]"))
        return found

    def _frozen(self, wanted: Mapping[Any, str], found: Mapping[str, Row]) -> dict[Any, _Model]:
        frozen = cast("Callable[[Row], _Model]", self._frozen_class)
        return {
            pk: frozen(row)
            for pk, key in wanted.items()
            if (row := found.get(key)) is not None and not row.is_deleted
        }

    @cached_property
    def _frozen_class(self) -> type[FrozenRow]:
        return frozen_class(self.model._meta.label, self.name, self.shape.names)

    @property
    def database(self) -> str:
        """Return the alias of its database: by default that of writes, since a replica may lag behind."""
        return self._using or router.db_for_write(self.model)

    @property
    def is_known_by_pk(self) -> bool:
        return self.key_name in ("pk", self.model._meta.pk.name)

    @property
    def names_its_fields(self) -> bool:
        """Return whether the cached fields were declared."""
        return self._names is not None

    @cached_property
    def key_column(self) -> models.Field[Any, Any]:
        """Return the unique field whose values are the keys. Raises ImproperlyConfigured."""
        meta = self.model._meta
        [found] = self._find([self.key_name])
        if not found.unique:
            raise ImproperlyConfigured(
                f"{meta.label}.{self.key_name} is not unique: it cannot be the key of its rows."
            )
        return found

    @cached_property
    def key_field(self) -> models.Field[Any, Any]:
        """Return the field that determines the type of the keys: key_column, or what it refers to as a relation."""
        found = self.key_column
        while found.is_relation:
            found = found.target_field  # type: ignore[attr-defined]
        return found

    @cached_property
    def _has_whole_keys(self) -> bool:
        return type(self.key_field).to_python is models.IntegerField.to_python

    @cached_property
    def _changes_keys(self) -> bool:
        return not type(self.key_field).get_prep_value.__module__.startswith("django.")

    def _ignores_case(self) -> bool:
        """Return whether the database takes keys for equal that differ in case alone."""
        collation = str(getattr(self.key_field, "db_collation", None) or "").lower()
        if collation:
            return collation == "nocase" or collation.endswith("_ci")
        return self.key_field.db_type(connections[self.database]) == "citext"

    @cached_property
    def fields(self) -> list[models.Field[Any, Any]]:
        """Return the fields that are cached. Raises ImproperlyConfigured."""
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

    @property
    def shape(self) -> Shape:
        alias = self.database
        if alias not in self._shapes:
            there = "" if self._using or alias == home_of(self.model) else f" in {alias}"
            note = f"{self.model._meta.db_table} by {self.key_name}{there}"
            self._shapes[alias] = Shape([(each.attname, kind_of(each)) for each in self.fields], note=note)
        return self._shapes[alias]

    def key(self, value: Any) -> str:
        """
        Return the *value* of the key field as text, in the form in which equal keys are the same: as the field stores
        it, and in small letters if the database compares without case. Raises InvalidName.
        """
        if type(value) is int and self._has_whole_keys:
            return str(value)  # the fast path for most keys, because a page reads many
        try:
            found = self.key_field.to_python(value)
            if self._changes_keys and found is not None:
                found = self.key_field.to_python(self.key_field.get_prep_value(found))
        except (ValidationError, TypeError, ValueError, OverflowError):
            found = None
        if found is None:
            raise InvalidName(f"A row of {self.model._meta.label} cannot have the key {value!r}.")
        text = _written(found)
        return text.casefold() if self._ignores_case() else text

    def load(self, keys: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        """
        Return the values of the existing rows by key, with a query per 30,000 keys. Raises any error of the query.
        """
        if not keys:
            return {}
        # Matched by the values of the keys, because a database may spell them differently.
        wanted, texts = {self.key_field.to_python(key): key for key in keys}, set(keys)
        columns = [each.attname for each in self.fields]
        rows = self.model._base_manager.using(self.database).order_by().values_list(self.key_name, *columns)
        found = (row for some in parts(wanted, _IN_QUERY) for row in rows.filter(self._among(some)))
        return {text: values for key, *values in found if (text := wanted.get(key) or self.key(key)) in texts}

    def _among(self, values: Sequence[Any]) -> Lookup[Any] | Q:
        if self._has_whole_keys and connections[self.database].vendor == "postgresql":
            return AnyOf(F(self.key_name), values)
        return Q(**{f"{self.key_name}__in": values})

    def load_all(self, keys: Sequence[str]) -> Loaded:
        """Return the values, as load() does, and the errors of rows that cannot be loaded. Raises RowsUnavailable."""
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
        except Exception as error:  # noqa: BLE001  (whatever a field raises for what it finds is an error of its row)
            if len(keys) == 1 or isinstance(error, ProgrammingError):  # such as a missing column
                loaded.errors.update(dict.fromkeys(keys, f"{type(error).__name__}: {error}"))
                return
            half = len(keys) // 2
            for some in (keys[:half], keys[half:]):
                self._load_into(loaded, some)

    def _can_be(self, key: str, loaded: Loaded) -> bool:
        """Return whether *key* can be the key of a row. It may come from a release with another key field."""
        try:
            if self.key(key) == key:
                return True
        except InvalidName:
            pass
        loaded.errors[key] = f"{key!r} is not a key of {self.model._meta.label}"
        return False


def _written(key: Any) -> str:
    """Return a key as text. Equal keys give the same text: 1.00 and 1, or one instant in two time zones."""
    if isinstance(key, Decimal) and key.is_finite():
        text = format(key, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(key, datetime) and key.tzinfo:
        return str(key.astimezone(UTC))
    return str(key)


class AnyOf(Lookup):
    """
    filter(AnyOf(F("pk"), [1, 2, 3])): rows by many whole numbers, sent to PostgreSQL as one parameter. With pk__in,
    each number is a parameter, and writing a thousand of them takes longer than the query.
    """

    prepare_rhs = False

    def __init__(self, column: F, values: Sequence[int]) -> None:
        super().__init__(column, list(values))

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        column, params = self.process_lhs(compiler, connection)
        return f"{column} = ANY(%s)", [*params, self.rhs]


def cached_rows() -> Mapping[str, CachedRows[Any]]:
    """Return all declared CachedRows, by name."""
    return MappingProxyType(declared)


@dataclass(frozen=True, kw_only=True)
class Caching:
    """The caching options of a model's rows; see CachedRows."""

    delay: float = 60.0
    fields: Sequence[str] | None = None
    key: str = "pk"
    name: str | None = None
    using: str | None = None


if TYPE_CHECKING:

    class _Cached:
        """The attribute *cached*: of a model its rows, of such a row what is known of it."""

        @overload
        def __get__(self, row: None, model: type[_Model]) -> CachedRows[_Model]: ...
        @overload
        def __get__(self, row: models.Model, model: type[_Model]) -> Row: ...
        def __get__(self, row: Any, model: Any) -> Any: ...


class CachedRow(models.Model):
    """
    A model whose class attribute *cached* is its CachedRows, with the options of the attribute *caching*. A derived
    model has its own cache; a proxy shares the cache of its model. The rows of a model of another app are cached by
    CachedRows(User, fields=[...]), in a module that ready() imports.
    """

    caching: ClassVar[Caching] = Caching()
    cached: ClassVar[_Cached]

    class Meta:
        abstract = True


def _prepare(sender: type[models.Model], **kwargs: Any) -> None:
    # Its writes may change the rows of models declared before: it may be a child or a proxy.
    for rows in declared.values():
        rows.writes.watch(sender)
    if issubclass(sender, CachedRow) and not sender._meta.abstract and not sender._meta.proxy:
        cached: Any = CachedRows(sender, **asdict(sender.caching))
        sender.cached = cached


class_prepared.connect(_prepare, dispatch_uid="components.rows")
