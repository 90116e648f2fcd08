"""
Fenced rows: rows that a lock protects, so that only its newest holder can write them.

A row keeps the fence of its last fenced write. One UPDATE both compares and writes (SET fence = token ... WHERE fence
<= token), so no other write can come between the two. If another transaction is writing the row, the UPDATE waits for
it. Then the database either compares with the new state of the row (READ COMMITTED) or fails (stricter isolation).
SQLite has one writer at a time. Therefore no accepted write has a lower fence than an earlier one.

A holder that is stopped or dies leaves the row as of its last transaction. Writes without a fence are accepted and do
not change the fence. The fence of a row is deleted with the row. See docs/fencing.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from asgiref.sync import sync_to_async
from django.core import checks
from django.db import models, router, transaction
from django.db.models import F, QuerySet

from components.exceptions import StaleFence
from components.kit.validation import check_fence

_Model = TypeVar("_Model", bound=models.Model, covariant=True)
_Owner = TypeVar("_Owner", bound=models.Model)


class FenceField(models.BigIntegerField):  # type: ignore[type-arg]
    """The fence of a row's last fenced write. A save() without a fence leaves it as it is in the database."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        # The instance may have an older fence than the row.
        return super().pre_save(model_instance, add) if add else F(self.attname)


class FencedQuerySet(QuerySet[_Model]):
    """
    A queryset whose writes, after fenced(), carry the fence of a holder. as_manager() makes a manager of it.

    A write raises StaleFence, and changes nothing, if one of its rows has a newer fence. update(), bulk_update() and
    delete() compare with the fences of the rows; create(), bulk_create() and get_or_create() give new rows the fence.
    Methods that cannot be fenced raise TypeError.
    """

    _fence: int | None = None

    def fenced(self, fence: int) -> Self:
        """Return the same rows, to be written with *fence*, which is `held.fence` of a lock. Raises InvalidValue."""
        _require_fence(self.model)
        return self._with_fence(check_fence(fence))

    def update(self, **kwargs: Any) -> int:
        """Update as Django does. Without arguments, mark the rows with the fence. Raises StaleFence."""
        if self._fence is None:
            return super().update(**kwargs)
        _refuse_own_fence("update", kwargs)
        self._for_write = True
        anyhow = self._with_fence(None)
        rows = anyhow
        if _joins(self):
            # Django would put all conditions into a subquery, which PostgreSQL does not evaluate again after waiting.
            rows = self._all_rows().filter(pk__in=anyhow.order_by().values("pk"))
        with transaction.atomic(using=self.db):
            written = rows.filter(fence__lte=self._fence).update(**kwargs, fence=self._fence)
            # Checked after the UPDATE, to find rows that were newer before it or became newer while it waited.
            if anyhow.filter(fence__gt=self._fence).exists():
                raise _stale(self.model, self._fence)
        self._result_cache = None
        return written

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete as Django does, after marking the rows with the fence, which locks them. Raises StaleFence."""
        if self._fence is None:
            return super().delete()
        if self.query.is_sliced or self.query.distinct_fields or self._fields is not None:  # type: ignore[attr-defined]
            raise TypeError("A fenced delete() takes no slices, no distinct(*fields), no values().")
        self._for_write = True
        # Before the transaction, because an SQLite transaction that begins with reading cannot always go on to write.
        pks = list(self.order_by().values_list("pk", flat=True))
        with transaction.atomic(using=self.db):
            self.filter(pk__in=pks).update()
            deleted = self._all_rows().filter(pk__in=pks, fence=self._fence).delete()
        self._result_cache = None
        return deleted

    delete.queryset_only = True  # type: ignore[attr-defined]

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        """
        Update as Django does.

        Each batch is an update() of this class. Raises StaleFence unless all rows are updated.
        """
        if self._fence is None:
            return super().bulk_update(objs, fields, batch_size)
        objs = tuple(objs)
        self._for_write = True
        with transaction.atomic(using=self.db):
            written = super().bulk_update(objs, fields, batch_size)
        for obj in objs:
            obj.fence = self._fence
        return written

    def create(self, **kwargs: Any) -> _Model:
        if self._fence is None:
            return super().create(**kwargs)
        _refuse_own_fence("create", kwargs)
        return super().create(**kwargs, fence=self._fence)

    def bulk_create(
        self,
        objs: Iterable[_Model],
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: bool = False,
        update_fields: Collection[str] | None = None,
        unique_fields: Collection[str] | None = None,
    ) -> list[_Model]:
        objs = list(objs)
        if self._fence is not None:
            if update_conflicts:
                raise _cannot("bulk_create(update_conflicts=True)", "bulk_update()")
            for obj in cast("list[Any]", objs):
                obj.fence = self._fence
        return super().bulk_create(
            objs, batch_size, ignore_conflicts, update_conflicts, update_fields, unique_fields
        )

    def update_or_create(self, *args: Any, **kwargs: Any) -> tuple[_Model, bool]:
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
        """Refuse a & b, a | b and a ^ b for querysets of different fences."""
        super()._merge_sanity_check(other)  # type: ignore[misc]
        if self._fence != getattr(other, "_fence", None):
            raise TypeError("Querysets of different fences cannot be combined: call fenced() on the result.")

    def _all_rows(self) -> Self:
        return cast(Self, FencedQuerySet(self.model, using=self.db))

    def _with_fence(self, fence: int | None) -> Self:
        clone = self.all()
        clone._fence = fence
        return clone


if TYPE_CHECKING:

    class _Objects:
        """The manager, whose methods are those of the queryset: type checkers do not know what as_manager() makes."""

        def __get__(self, instance: None, model: type[_Owner]) -> FencedQuerySet[_Owner]: ...


class FencedModel(models.Model):
    """A model whose rows can be written with a fence, by `objects.fenced(fence)` or save(fence=...)."""

    fence = FenceField(default=0, editable=False)

    objects: _Objects = cast(Any, FencedQuerySet.as_manager())

    #: The fence of the running save().
    _saving: int | None = None

    class Meta:
        abstract = True

    def save(
        self,
        *,
        fence: int | None = None,
        force_insert: bool | tuple[Any, ...] = False,
        force_update: bool = False,
        using: str | None = None,
        update_fields: Iterable[str] | None = None,
    ) -> None:
        """
        Save as Django does; with *fence*, as the holder of the fence. Raises StaleFence if nothing was written.

        With a fence, a deleted row is not created again: DatabaseError is raised, as with `force_update`.
        """
        using = using or router.db_for_write(type(self), instance=self)
        if fence is None:
            written: AbstractContextManager[object] = nullcontext()
        else:
            _require_fence(type(self))
            check_fence(fence)
            written = transaction.atomic(using=using)
            force_update = force_update or not (self._state.adding or force_insert)
            update_fields = update_fields if update_fields is None else {*update_fields, "fence"}
        with self._saving_with(fence), written:
            super().save(
                force_insert=force_insert, force_update=force_update, using=using, update_fields=update_fields
            )

    async def asave(self, **kwargs: Any) -> None:
        await sync_to_async(self.save)(**kwargs)

    @classmethod
    def check(cls, **kwargs: Any) -> list[checks.CheckMessage]:
        """Report components.E005 if the rows lie in more than one table."""
        found = super().check(**kwargs)
        if _lies_in_two_tables(cls):
            hint = "Derive it from abstract models only, or give it a foreign key to the other model."
            found.append(checks.Error(_two_tables(cls), hint=hint, obj=cls, id="components.E005"))
        return found

    @contextmanager
    def _saving_with(self, fence: int | None) -> Iterator[None]:
        """Set the fence of the instance, and reset it after an error. Receivers of signals may save it again."""
        before: dict[str, Any] = {
            name: self.__dict__[name] for name in ("fence", "_saving") if name in self.__dict__
        }
        self._saving = fence
        if fence is not None:
            self.fence = fence
        try:
            yield
        except BaseException:
            _restore(self, "fence", before)
            raise
        finally:
            _restore(self, "_saving", before)

    def _do_update(self, base_qs: Any, using: Any, pk_val: Any, values: Any, *args: Any) -> Any:
        """Run the UPDATE of a save() as FencedQuerySet.update() does."""
        if self._saving is None:
            return super()._do_update(base_qs, using, pk_val, values, *args)
        field = self._meta.get_field("fence")
        values = [each for each in values if each[0] is not field] + [(field, None, self._saving)]
        rows = base_qs.filter(fence__lte=self._saving)
        updated = super()._do_update(rows, using, pk_val, values, *args)
        if not updated and base_qs.filter(pk=pk_val, fence__gt=self._saving).exists():
            raise _stale(type(self), self._saving)
        return updated


def _require_fence(model: type[models.Model]) -> None:
    """Raise TypeError unless the rows of *model* have a fence and lie in one table."""
    fields = {field.name: field for field in model._meta.get_fields()}
    if not isinstance(fields.get("fence"), FenceField):
        raise TypeError(
            f"{model.__name__} cannot be fenced: it is not a FencedModel, so its rows have no fence."
        )
    if _lies_in_two_tables(model):
        raise TypeError(_two_tables(model))


def _lies_in_two_tables(model: type[models.Model]) -> bool:
    """Return whether *model* derives from another model that has its own table; a proxy does not count."""
    return bool((model._meta.concrete_model or model)._meta.parents)


def _two_tables(model: type[models.Model]) -> str:
    return f"{model.__name__} cannot be fenced: its rows lie in two tables, but one UPDATE must compare and write."


def _stale(model: type[models.Model], fence: int) -> StaleFence:
    return StaleFence(
        f"{model.__name__}: a row was written with a fence newer than {fence}, so nothing was changed. The lock was "
        "lost to another holder. Acquire it again, and read the row again."
    )


def _joins(rows: QuerySet[Any]) -> bool:
    """Return whether the conditions of *rows* are about other tables too, as Django's own UPDATE finds it."""
    query = rows.query.clone()
    query.get_initial_alias()
    return query.count_active_tables() > 1


def _cannot(what: str, instead: str) -> TypeError:
    return TypeError(f"{what} cannot be fenced; use {instead}.")


def _refuse_own_fence(what: str, values: Mapping[str, Any]) -> None:
    if "fence" in values:
        raise TypeError(f"{what}() writes the fence that fenced() was given; do not give it another one.")


def _restore(instance: models.Model, name: str, before: Mapping[str, Any]) -> None:
    instance.__dict__.pop(name, None)
    if name in before:
        instance.__dict__[name] = before[name]
