"""
FencedQuerySet: fenced(fence), and what the writes of a queryset do then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Self, TypeVar, cast

from django.db import models, transaction
from django.db.models import QuerySet

from components.kit.values import check_fence
from components.services.locks.models.fields import require_fence, stale

_Model = TypeVar("_Model", bound=models.Model, covariant=True)


class FencedQuerySet(QuerySet[_Model]):
    """
    A queryset whose writes, after fenced(), are those of the holder of a fence; as_manager() makes a manager of it.

    A write raises StaleFence, and changes nothing, if one of the rows that it is for has a newer fence. update(),
    bulk_update() and delete() ask the rows for theirs; create(), bulk_create() and get_or_create() give their new
    rows the fence. What cannot be fenced raises TypeError.
    """

    _fence: int | None = None

    def fenced(self, fence: int) -> Self:
        """The same rows, for writing with *fence* (of a lock: `held.fence`). Raises InvalidFence."""
        require_fence(self.model)
        return self._with_fence(check_fence(fence))

    def update(self, **kwargs: Any) -> int:
        """As Django's, and without arguments it marks the rows with the fence. Raises StaleFence."""
        if self._fence is None:
            return super().update(**kwargs)
        _refuse_own_fence("update", kwargs)
        self._for_write = True
        anyhow = self._with_fence(None)
        rows = anyhow
        if _joins(self):
            # Django would put all conditions into a subquery, which PostgreSQL does not evaluate anew after waiting.
            rows = self._all_rows().filter(pk__in=anyhow.order_by().values("pk"))
        with transaction.atomic(using=self.db):
            written = rows.filter(fence__lte=self._fence).update(**kwargs, fence=self._fence)
            # Asked afterwards: rows that were newer before this statement, or became so while it waited.
            if anyhow.filter(fence__gt=self._fence).exists():
                raise stale(self.model, self._fence)
        self._result_cache = None
        return written

    def delete(self) -> tuple[int, dict[str, int]]:
        """As Django's: marks the rows with the fence, which locks them, and deletes what it has marked."""
        if self._fence is None:
            return super().delete()
        if self.query.is_sliced or self.query.distinct_fields or self._fields is not None:  # type: ignore[attr-defined]
            raise TypeError("A fenced delete() takes no slices, no distinct(*fields), no values().")
        self._for_write = True
        # Before the transaction: one of SQLite that begins with reading cannot always go on to write.
        pks = list(self.order_by().values_list("pk", flat=True))
        with transaction.atomic(using=self.db):
            self.filter(pk__in=pks).update()
            deleted = self._all_rows().filter(pk__in=pks, fence=self._fence).delete()
        self._result_cache = None
        return deleted

    delete.queryset_only = True  # type: ignore[attr-defined]

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        """As Django's, whose every batch is an update() of this class: all of them, or StaleFence."""
        if self._fence is None:
            return super().bulk_update(objs, fields, batch_size)
        objs = tuple(objs)
        self._for_write = True
        with transaction.atomic(using=self.db):
            written = super().bulk_update(objs, fields, batch_size)
        for obj in objs:
            obj.fence = self._fence
        return written

    def create(self, **kwargs: Any) -> Any:
        if self._fence is None:
            return super().create(**kwargs)
        _refuse_own_fence("create", kwargs)
        return super().create(**kwargs, fence=self._fence)

    def bulk_create(
        self,
        objs: Iterable[Any],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Collection[str] | None = None,
        unique_fields: Collection[str] | None = None,
    ) -> list[Any]:
        objs = list(objs)
        if self._fence is not None:
            if update_conflicts:
                raise _cannot("bulk_create(update_conflicts=True)", "bulk_update()")
            for obj in objs:
                obj.fence = self._fence
        return super().bulk_create(
            objs, batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields
        )

    def update_or_create(self, *args: Any, **kwargs: Any) -> tuple[Any, bool]:
        if self._fence is None:
            return super().update_or_create(*args, **kwargs)
        raise _cannot("update_or_create()", "get_or_create(), and save(fence=...) on what it found")

    def _raw_delete(self, using: str | None) -> int:
        if self._fence is None:
            return super()._raw_delete(using)
        raise _cannot("_raw_delete()", "delete()")

    def _clone(self) -> Self:
        clone = cast(Self, super()._clone())  # type: ignore[misc]
        clone._fence = self._fence
        return clone

    def _merge_sanity_check(self, other: Any) -> None:
        """Of a & b, a | b, a ^ b: what comes of them has the fence of both."""
        super()._merge_sanity_check(other)  # type: ignore[misc]
        if self._fence != getattr(other, "_fence", None):
            raise TypeError("Querysets of different fences cannot be combined: call fenced() on the result.")

    def _all_rows(self) -> Self:
        """Those of the model, where this queryset writes."""
        return cast(Self, FencedQuerySet(self.model, using=self.db))

    def _with_fence(self, fence: int | None) -> Self:
        clone = self.all()
        clone._fence = fence
        return clone


def _joins(rows: QuerySet[Any]) -> bool:
    """Whether the conditions of *rows* are about other tables too; as Django's own UPDATE asks it."""
    query = rows.query.clone()
    query.get_initial_alias()
    return query.count_active_tables() > 1


def _cannot(what: str, instead: str) -> TypeError:
    return TypeError(f"{what} cannot be fenced; use {instead}.")


def _refuse_own_fence(what: str, values: Mapping[str, Any]) -> None:
    if "fence" in values:
        raise TypeError(f"{what}() writes the fence that was given to fenced(); do not give it another.")
