"""Context that the base template needs on every page, including the pages of other apps."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from .views import player_of


def player(request: HttpRequest) -> dict[str, Any]:
    """Return the visitor's player, which is looked up when the template uses it; None for visitors without one."""
    return {"player": SimpleLazyObject(lambda: player_of(request.user))}
