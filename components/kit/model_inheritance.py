"""
The rows of models: which models share them, and in which database they are.

The home of a model is the database that routers choose for it outside of any request. In a request, they may choose
that of a tenant, whose rows have the same keys.
"""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.db import models, router

_homes: dict[type[models.Model], str] = {}
_awaited: list[type[models.Model]] = []


def family(model: type[models.Model]) -> Iterator[type[models.Model]]:
    """
    Return *model*, its bases, and all models that derive from any of these, without abstract ones.

    Signals are connected for these only. A receiver for all models would keep Django from deleting rows in one query,
    since Django deletes the rows of a model one by one if a receiver listens.
    """
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


def note_home(model: type[models.Model]) -> None:
    """Find out the home of *model* before the first request. A router may be imported only when models are loaded."""
    if apps.models_ready:
        home_of(model)
    else:
        _awaited.append(model)


def settle_homes() -> None:
    """Find out the homes of the models that were declared before the apps were ready."""
    while _awaited:
        home_of(_awaited.pop())


def home_of(model: type[models.Model]) -> str:
    """Return the alias of the database."""
    if model not in _homes:
        _homes[model] = router.db_for_write(model)
    return _homes[model]
