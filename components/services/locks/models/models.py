"""
FencedModel: a model with a fence, and the saving of one instance with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from asgiref.sync import sync_to_async
from django.core import checks
from django.db import models, router, transaction

from components.kit.values import check_fence
from components.services.locks.models.fields import (
    FenceField,
    lies_in_two_tables,
    require_fence,
    stale,
    two_tables,
)
from components.services.locks.models.querysets import FencedQuerySet


class FencedModel(models.Model):
    """A model whose rows can be written with a fence: by `objects.fenced(fence)`, or by save(fence=...)."""

    fence = FenceField(default=0, editable=False)

    objects = FencedQuerySet.as_manager()

    #: The fence of the save() that is under way.
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
        As Django's; with *fence*, as its holder. Raises StaleFence, and then nothing was written.

        With a fence, a row that is gone is not made anew: that raises DatabaseError, as `force_update` does.
        """
        using = using or router.db_for_write(type(self), instance=self)
        if fence is None:
            written: AbstractContextManager[object] = nullcontext()
        else:
            require_fence(type(self))
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
        """components.E005: its rows lie in more than one table."""
        found = super().check(**kwargs)
        if lies_in_two_tables(cls):
            hint = "Derive it from abstract models only; or give it a key to the other model instead."
            found.append(checks.Error(two_tables(cls), hint=hint, obj=cls, id="components.E005"))
        return found

    @contextmanager
    def _saving_with(self, fence: int | None) -> Iterator[None]:
        """The instance takes on the fence, and keeps it if all goes well. Receivers of signals may save it again."""
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
        """The one UPDATE of a save: as FencedQuerySet.update()."""
        if self._saving is None:
            return super()._do_update(base_qs, using, pk_val, values, *args)
        field = self._meta.get_field("fence")
        values = [each for each in values if each[0] is not field] + [(field, None, self._saving)]
        rows = base_qs.filter(fence__lte=self._saving)
        updated = super()._do_update(rows, using, pk_val, values, *args)
        if not updated and base_qs.filter(pk=pk_val, fence__gt=self._saving).exists():
            raise stale(type(self), self._saving)
        return updated


def _restore(instance: models.Model, name: str, before: Mapping[str, Any]) -> None:
    instance.__dict__.pop(name, None)
    if name in before:
        instance.__dict__[name] = before[name]
