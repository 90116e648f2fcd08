"""
Writes: invalidates the rows that a write has changed, by Django's signals, after the commit.

It listens to the models that share rows with the cached one (kit/model_inheritance.py).

A row whose key is not its primary key may have another key in memory than in the database. Therefore, before such a
row is saved or deleted, the key is read from the database.

The deletion of a row can change cached rows that refer to it without sending signals for them (SET_NULL, SET_DEFAULT,
SET(), or actions of the database itself). The keys of these rows are read from the database before the deletion.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import connections, models, transaction
from django.db.models import QuerySet
from django.db.models.fields.related import resolve_relation
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save

from components.exceptions import InvalidName
from components.kit.model_inheritance import family
from components.kit.validation import is_key
from components.services.rows.members import check_key

if TYPE_CHECKING:
    from components.services.rows.models.cached import CachedRows

logger = logging.getLogger(__name__)

#: Django deletes the rows that refer to a deleted one, with signals, or refuses the deletion.
_TOLD = (models.CASCADE, models.PROTECT, models.RESTRICT)
#: The largest number of rows referring to one deleted row that the cache invalidates.
MOST_REFERRING = 10_000


class Writes:
    """The writes to rows of *source*, which are invalidated in its cache."""

    def __init__(self, source: CachedRows[Any]) -> None:
        self._name, self._source = source.name, source
        self._relations = [
            each for each in _relations(source.model) if each.remote_field.on_delete not in _TOLD
        ]
        known = {*family(source.model)}
        for relation in self._relations:
            if not isinstance(relation.remote_field.model, str):  # one not declared yet is watched later
                known.update(family(relation.remote_field.model))
        for model in known:
            self.watch(model)

    def watch(self, model: type[models.Model]) -> None:
        """
        Listen to writes of *model* if it shares rows with the cached model, and to deletions if the cached model
        refers to it.
        """
        if any(_is_a(model, relation) for relation in self._relations):
            uid = f"components.rows:{self._name}:referred"
            pre_delete.connect(self._before_referred_delete, sender=model, dispatch_uid=uid)
        if not (_derives(model, self._source.model) or _derives(self._source.model, model)):
            return
        receivers = [(post_save, self._after), (post_delete, self._after)]
        if not self._source.is_known_by_pk:
            receivers += [(pre_save, self._before_save), (pre_delete, self._before_delete)]
        for signal, receiver in receivers:
            signal.connect(receiver, sender=model, dispatch_uid=f"components.rows:{self._name}")

    def _before_save(
        self, sender: type[models.Model], instance: Any, using: str, update_fields: Any = None, **kwargs: Any
    ) -> None:
        if is_key(instance.pk):
            self._keep(instance, self._stored_key(sender, instance, using))

    def _before_delete(
        self, sender: type[models.Model], instance: Any, using: str, origin: Any = None, **kwargs: Any
    ) -> None:
        """Note the key. Those of a queryset were just read; an instance may have been changed since it was read."""
        is_fresh = isinstance(origin, QuerySet)
        self._keep(instance, (self._key if is_fresh else self._stored_key)(sender, instance, using))

    def _before_referred_delete(
        self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any
    ) -> None:
        keys = set[str | None]()
        for relation in self._relations:
            if not _is_a(sender, relation):
                continue
            rows = self._source.model._base_manager.using(using).filter(**{relation.name: instance})
            found = rows.values_list(self._source.key_name, flat=True)[: MOST_REFERRING + 1]
            keys |= {self._written(value) for value in found[:MOST_REFERRING]}
            if len(found) > MOST_REFERRING:
                logger.warning(
                    "More than %s rows of %s refer to the deleted %s %s: others change with their next load.",
                    f"{MOST_REFERRING:,}",
                    self._name,
                    sender._meta.label,
                    instance.pk,
                )
        self._tell(keys, using)

    def _keep(self, instance: Any, key: str | None) -> None:
        instance._state.__dict__.setdefault("cached_rows", {})[self._name] = key

    def _after(self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any) -> None:
        before = getattr(instance._state, "cached_rows", {}).pop(self._name, None)
        keys = {before, self._key(sender, instance, using)}
        if not self._source.is_known_by_pk and kwargs["signal"] is post_save:  # a trigger may have changed it
            keys.add(self._stored_key(sender, instance, using))
        self._tell(keys, using)

    def _tell(self, found: set[str | None], using: str) -> None:
        if not (keys := {key for key in found if key is not None}):
            return
        connection = connections[using]
        if connection.in_atomic_block or connection.get_autocommit():
            # An error of the cache does not make the write fail, so it is only logged.
            transaction.on_commit(lambda: self._source.cache.invalidate(*keys), using=using, robust=True)
            return
        try:  # no signal is sent when a manually managed transaction commits
            self._source.cache.invalidate(*keys)
        except Exception:
            logger.exception("The rows %s of %s are not invalidated.", sorted(keys), self._name)

    def _key(self, sender: type[models.Model], instance: Any, using: str) -> str | None:
        """Return the key of the row of *instance*; None if it cannot be cached."""
        value = instance.__dict__.get(self._source.key_column.attname)
        if value is None and self._source.is_known_by_pk and _is_linked(self._source.model, sender):
            value = instance.pk
        if not is_key(value):
            return self._stored_key(sender, instance, using)
        return self._written(value)

    def _stored_key(self, sender: type[models.Model], instance: Any, using: str) -> str | None:
        model, pk = self._source.model, self._source.model._meta.pk
        is_parent = pk.attname not in instance.__dict__
        known = {sender._meta.pk.name: instance.pk} if is_parent else {"pk": instance.__dict__[pk.attname]}
        found = model._base_manager.using(using).filter(**known).values_list(self._source.key_name, flat=True)
        return self._written(found.first())

    def _written(self, value: Any) -> str | None:
        """Return the key of this value; None if there is none, or if it cannot be cached."""
        if value is None:
            return None
        try:
            return check_key(self._source.key(value))
        except InvalidName:  # no reader can have requested this key
            return None


def _derives(model: type[models.Model], other: type[models.Model]) -> bool:
    """Return whether a row of *model* has one of *other*, which may be the same or a parent."""
    ours, theirs = model._meta.concrete_model, other._meta.concrete_model
    return bool(ours and theirs) and issubclass(ours, theirs)  # type: ignore[arg-type]


def _relations(model: type[models.Model]) -> list[Any]:
    return [
        each
        for each in model._meta.concrete_fields
        if each.is_relation and each.remote_field and not getattr(each.remote_field, "parent_link", False)
    ]


def _is_a(model: type[models.Model], relation: Any) -> bool:
    """Return whether *relation* refers to rows of *model*. It may name a model that is not declared yet."""
    target: Any = resolve_relation(relation.model, relation.remote_field.model)  # "self" is its own model
    if isinstance(target, str):
        return any(
            target.lower() == each._meta.label_lower for each in model.__mro__ if hasattr(each, "_meta")
        )
    return _derives(model, target)


def _is_linked(child: type[models.Model], parent: type[models.Model]) -> bool:
    pk: Any = child._meta.pk
    while pk.is_relation:
        if pk.remote_field.model._meta.concrete_model is parent._meta.concrete_model:
            return True
        pk = pk.target_field
    return False
