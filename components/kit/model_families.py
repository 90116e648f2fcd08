"""
Which models share rows: parents, children, proxies.

Signals are heard of these and no others. A receiver of all models would keep Django from deleting rows of any of them
in one query, since it deletes those one by one of which somebody wants to hear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import models


def descendants(model: type[models.Model]) -> Iterator[type[models.Model]]:
    """*model* and all that derive from it, those of many parents once, without those that are abstract."""
    return _descendants([model])


def family(model: type[models.Model]) -> Iterator[type[models.Model]]:
    """*model*, those that it derives from, and all that derive from any of these; without those that are abstract."""
    return _descendants([each for each in model.__mro__ if _is_concrete(each)])


def _descendants(rest: list[type[models.Model]]) -> Iterator[type[models.Model]]:
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
