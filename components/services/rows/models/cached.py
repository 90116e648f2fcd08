"""
CachedRows: the cached rows of a model.

What a reader misses he loads himself, once for all who miss it. Within a transaction he asks the database and stores
nothing: he may see what is not committed, or what was so when the transaction began.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, models
from django.db.models.signals import class_prepared

from components.services.rows import LEASE, Row, RowCache, Unshared, check_delay
from components.services.rows.models.frozen import FrozenRow, frozen_class
from components.services.rows.models.sources import Source
from components.services.rows.models.writes import Writes


class _Uncommitted(Unshared):
    """Rows were to be loaded within a transaction, where they are not everybody's."""


class CachedRows(Source):
    """
    The rows of *model*: of each the *fields* (None: all but passwords), known by the unique field *key*.

    A row on the schedule is loaded every *delay* seconds if it has no delay of its own; one that is on none is good
    for so long. Called *name* in Redis, by default as the model: "market.item".
    """

    def __init__(
        self,
        model: type[models.Model],
        *,
        delay: float = 60.0,
        fields: Sequence[str] | None = None,
        key: str = "pk",
        name: str | None = None,
        using: str | None = None,
    ) -> None:
        super().__init__(model, fields=fields, key=key, using=using)
        self.name, self.delay = name or model._meta.label_lower, check_delay(delay)
        if not self.delay:
            raise ImproperlyConfigured(
                f"The rows of {self.name} have the delay {delay!r}: it must be above 0."
            )
        # A model of another registry is one of a test, or one that stands for a table while that is rebuilt.
        if model._meta.apps is apps:
            if self.name in _declared:
                raise ImproperlyConfigured(
                    f"Two models have rows called {self.name!r}; give one of them another name."
                )
            _declared[self.name] = self
        self.writes = Writes(self.name, self, lambda *keys: self.cache.invalidate(*keys))

    @cached_property
    def cache(self) -> RowCache:
        return RowCache(self.name, self.shape)

    def schedule(self, pk: Any, delay: float | None = None) -> None:
        """Let the row be loaded now, and again every *delay* seconds; 0 or less unschedules it."""
        self.cache.schedule(self.key(pk), self.delay if delay is None else delay)

    async def aschedule(self, pk: Any, delay: float | None = None) -> None:
        """schedule(), awaited."""
        await self.cache.aschedule(self.key(pk), self.delay if delay is None else delay)

    def schedule_many(self, pks: Iterable[Any], delay: float | None = None) -> None:
        """schedule() of several, in one round trip to each node."""
        each = self.delay if delay is None else delay
        self.cache.schedule_many({self.key(pk): each for pk in pks})

    def unschedule(self, *pks: Any) -> None:
        """Forget these rows."""
        self.cache.unschedule(*map(self.key, pks))

    def refresh(self, *pks: Any) -> set[Any]:
        """Let these rows be loaded as soon as a daemon can. Those that are on no schedule, of which nobody does."""
        keys = {pk: self.key(pk) for pk in pks}
        absent = self.cache.refresh(*keys.values())
        return {pk for pk, key in keys.items() if key in absent}

    def invalidate(self, *pks: Any) -> None:
        """These rows were written by something that sends no signal. Call it after the commit."""
        self.cache.invalidate(*map(self.key, pks))

    def get(
        self, pk: Any, *, wait: float = LEASE, max_age: float | None = None, stale: bool = False
    ) -> FrozenRow | None:
        """
        The row; None if there is none. Loaded if it is not here, or older than *max_age* seconds.

        Who finds another loading it waits *wait* seconds, or with *stale* takes the old one, if there is one. Raises
        RowNotLoaded, RowNotSerializable, RowTooLarge, InvalidDuration, InvalidName, and RedisUnavailable.
        """
        return self.get_many([pk], wait=wait, max_age=max_age, stale=stale).get(pk)

    async def aget(
        self, pk: Any, *, wait: float = LEASE, max_age: float | None = None, stale: bool = False
    ) -> FrozenRow | None:
        """get(), awaited."""
        return (await self.aget_many([pk], wait=wait, max_age=max_age, stale=stale)).get(pk)

    def get_many(
        self, pks: Iterable[Any], *, wait: float = LEASE, max_age: float | None = None, stale: bool = False
    ) -> dict[Any, FrozenRow]:
        """get() of several, by *pks*; what there is not is left out. What is not here is loaded in one query."""
        wanted = {pk: self.key(pk) for pk in pks}
        options: dict[str, Any] = {"max_age": max_age, "stale": stale}
        # Who may hold locks of the database waits for nobody who loads.
        if self._is_within_a_transaction():
            found = self.cache.get_many(wanted.values(), **options)
            found |= self._rows(self.load([key for key in wanted.values() if key not in found]))
        else:
            found = self.cache.get_or_load(wanted.values(), self.load, delay=self.delay, wait=wait, **options)
        return self._frozen(wanted, found)

    async def aget_many(
        self, pks: Iterable[Any], *, wait: float = LEASE, max_age: float | None = None, stale: bool = False
    ) -> dict[Any, FrozenRow]:
        """get_many(), awaited."""
        wanted = {pk: self.key(pk) for pk in pks}
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
        is_open = connection.connection is not None  # what is cached is read without a database
        return connection.in_atomic_block or (is_open and not connection.autocommit)

    def _rows(self, values: Mapping[str, Sequence[Any]]) -> dict[str, Row]:
        """What was loaded, as if it came from Redis."""
        found = {}
        for key, each in values.items():
            found[key] = Row(self.shape, key, 0, json.loads(f"[0,1,{self.shape.encode(key, each)}]"))
        return found

    def _frozen(self, wanted: Mapping[Any, str], found: Mapping[str, Row]) -> dict[Any, FrozenRow]:
        frozen = self._frozen_class
        return {
            pk: frozen(row)
            for pk, key in wanted.items()
            if (row := found.get(key)) is not None and not row.is_deleted
        }

    @cached_property
    def _frozen_class(self) -> type[FrozenRow]:
        return frozen_class(self.model._meta.label, self.shape.names)


_declared: dict[str, CachedRows] = {}


def cached_rows() -> Mapping[str, CachedRows]:
    """All that were declared, by their names."""
    return MappingProxyType(_declared)


def _watch(sender: type[models.Model], **kwargs: Any) -> None:
    """A child or a proxy of a model with cached rows may be made later."""
    for rows in _declared.values():
        rows.writes.watch(sender)


class_prepared.connect(_watch, dispatch_uid="components.rows.writes")
