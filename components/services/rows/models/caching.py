"""
CachedRow: a model whose class has *cached*, its CachedRows, by what its attribute *caching* says.

The rows of a model of another app are cached by CachedRows(User, fields=[...]), in a module that ready() imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from django.db import models
from django.db.models.signals import class_prepared

from components.services.rows.models.models import CachedRows


@dataclass(frozen=True, kw_only=True)
class Caching:
    """How rows of a model are cached: the options of CachedRows."""

    delay: float = 60.0
    fields: Sequence[str] | None = None
    key: str = "pk"
    name: str | None = None
    using: str | None = None


class CachedRow(models.Model):
    """A model whose rows are cached. One that derives from it has a cache of its own, a proxy that of its model."""

    caching: ClassVar[Caching] = Caching()
    cached: ClassVar[CachedRows]

    class Meta:
        abstract = True


def _prepare(sender: type[Any], **kwargs: Any) -> None:
    if issubclass(sender, CachedRow) and not sender._meta.abstract and not sender._meta.proxy:
        sender.cached = CachedRows(sender, **asdict(sender.caching))


class_prepared.connect(_prepare, dispatch_uid="components.rows")
