"""
The column of a row's fence, the rule for the models that have it, and the errors of all their writes.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F

from components.exceptions import StaleFence


class FenceField(models.BigIntegerField):  # type: ignore[type-arg]
    """The fence of the last fenced write; a save() without a fence leaves it as it stands in the database."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        # What the instance has may be older than what the row has.
        return super().pre_save(model_instance, add) if add else F(self.attname)


def require_fence(model: type[models.Model]) -> None:
    """Raises TypeError unless rows of *model* have a fence, and lie in one table."""
    fields = {field.name: field for field in model._meta.get_fields()}
    if not isinstance(fields.get("fence"), FenceField):
        raise TypeError(
            f"{model.__name__} cannot be fenced: it is no FencedModel, so its rows have no fence."
        )
    if lies_in_two_tables(model):
        raise TypeError(two_tables(model))


def lies_in_two_tables(model: type[models.Model]) -> bool:
    """Whether it derives from another model with a table of its own; a proxy does not count."""
    return bool((model._meta.concrete_model or model)._meta.parents)


def two_tables(model: type[models.Model]) -> str:
    return f"{model.__name__} cannot be fenced: its rows lie in two tables, and one UPDATE cannot ask and write both."


def stale(model: type[models.Model], fence: int) -> StaleFence:
    return StaleFence(
        f"{model.__name__}: a row was written with a fence newer than {fence}, so nothing was changed. The lock was "
        "lost to another holder: acquire it again, and read the row anew."
    )
