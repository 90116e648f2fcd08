"""
The home of a model: the database that routers choose for it outside of any request. In a request, they may choose
that of a tenant, whose rows have the same keys.
"""

from __future__ import annotations

from django.apps import apps
from django.db import models, router

_homes: dict[type[models.Model], str] = {}
_awaited: list[type[models.Model]] = []


def note(model: type[models.Model]) -> None:
    """Find out the home of *model* before the first request. A router may be imported only when models are loaded."""
    if apps.models_ready:
        home_of(model)
    else:
        _awaited.append(model)


def settle() -> None:
    """Find out the homes of the models that were declared before the apps were ready."""
    while _awaited:
        home_of(_awaited.pop())


def home_of(model: type[models.Model]) -> str:
    """Return the alias of the database."""
    if model not in _homes:
        _homes[model] = router.db_for_write(model)
    return _homes[model]
