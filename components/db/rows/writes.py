"""
Writes: which rows a write has changed, as Django's signals tell it, and that the cache is told after the commit.

The receivers are those of the models that share rows with the cached one (families.py).

A row that is known by something else than its primary key may get another key. So before such a row is saved, the
database is asked what its key was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.db import connections, models, transaction
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save

from components.db.families import family
from components.db.rows.sources import Source
from components.exceptions import InvalidName
from components.services.rows.core import check_key

logger = logging.getLogger(__name__)


class Writes:
    """Those of the rows of *source*; *invalidate* is told their keys."""

    def __init__(self, name: str, source: Source, invalidate: Callable[..., None]) -> None:
        self._name, self._source, self._invalidate = name, source, invalidate
        for model in family(source.model):
            self.watch(model)

    def watch(self, model: type[models.Model]) -> None:
        """Heed writes of *model*, if it shares rows with the cached one."""
        if not _share_rows(model, self._source.model):
            return
        receivers = [(post_save, self._after), (post_delete, self._after)]
        if not self._source.is_known_by_pk:
            receivers += [(pre_save, self._before_save), (pre_delete, self._before_delete)]
        for signal, receiver in receivers:
            signal.connect(receiver, sender=model, dispatch_uid=f"components.rows:{self._name}")

    def _before_save(
        self, sender: type[models.Model], instance: Any, using: str, update_fields: Any = None, **kwargs: Any
    ) -> None:
        names = {self._source.key_name, self._attname}
        if instance.pk is not None and (update_fields is None or names & set(update_fields)):
            self._keep(instance, self._stored_key(sender, instance, using))

    def _before_delete(self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any) -> None:
        self._keep(instance, self._key(sender, instance, using))

    def _keep(self, instance: Any, key: str | None) -> None:
        instance._state.__dict__.setdefault("cached_rows", {})[self._name] = key

    def _after(self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any) -> None:
        before = getattr(instance._state, "cached_rows", {}).pop(self._name, None)
        keys = {key for key in (before, self._key(sender, instance, using)) if key is not None}
        if not keys:
            return
        connection = connections[using]
        if connection.in_atomic_block or connection.get_autocommit():
            # A cache that is behind is no reason to tell that the write has failed: it is logged.
            transaction.on_commit(lambda: self._invalidate(*keys), using=using, robust=True)
            return
        try:  # of a transaction that is managed by hand nobody tells when it is committed
            self._invalidate(*keys)
        except Exception:
            logger.exception("The rows %s of %s are not invalidated.", sorted(keys), self._name)

    @property
    def _attname(self) -> str:
        return self._source.key_column.attname

    def _key(self, sender: type[models.Model], instance: Any, using: str) -> str | None:
        """That of the row that *instance* is; None if it has none that can be cached."""
        value = instance.__dict__.get(self._attname)
        if value is None and self._source.is_known_by_pk and _is_linked(self._source.model, sender):
            value = instance.pk
        if value is None or hasattr(value, "resolve_expression"):
            return self._stored_key(sender, instance, using)
        return self._written(value)

    def _stored_key(self, sender: type[models.Model], instance: Any, using: str) -> str | None:
        """As the database has it."""
        model, pk = self._source.model, self._source.model._meta.pk
        is_parent = pk.attname not in instance.__dict__
        known = {sender._meta.pk.name: instance.pk} if is_parent else {"pk": instance.__dict__[pk.attname]}
        found = model._base_manager.using(using).filter(**known).values_list(self._source.key_name, flat=True)
        value = found.first()
        return None if value is None else self._written(value)

    def _written(self, value: Any) -> str | None:
        try:
            return check_key(self._source.key(value))
        except InvalidName:  # nobody can have asked for it
            return None


def _share_rows(one: type[models.Model], other: type[models.Model]) -> bool:
    ours, theirs = one._meta.concrete_model, other._meta.concrete_model
    return bool(ours and theirs) and (issubclass(ours, theirs) or issubclass(theirs, ours))  # type: ignore[arg-type]


def _is_linked(child: type[models.Model], parent: type[models.Model]) -> bool:
    """Whether the primary key of *child* is that of *parent*, by a link, or by one after another."""
    pk: Any = child._meta.pk
    while pk.is_relation:
        if pk.remote_field.model._meta.concrete_model is parent._meta.concrete_model:
            return True
        pk = pk.target_field
    return False
