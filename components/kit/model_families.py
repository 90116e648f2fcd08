"""
Find the models that share rows: parents, children and proxies.

Signals are connected for these models only. A receiver for all models would keep Django from deleting rows in one
query, since Django deletes the rows of a model one by one if a receiver listens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import models


def family(model: type[models.Model]) -> Iterator[type[models.Model]]:
    """Return *model*, its bases, and all models that derive from any of these, without abstract ones."""
    rest = [each for each in model.__mro__ if _is_concrete(each)]
    seen: set[type[models.Model]] = set()
    while rest:
        if (each := rest.pop()) not in seen:
            seen.add(each)
            rest += each.__subclasses__()
            if _is_concrete(each):
                yield each


def _is_concrete(model: type[Any]) -> bool:
    meta = getattr(model, "_meta", None)
    return meta is not None and not meta.abstract
