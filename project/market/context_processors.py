"""What the base template shows on every page, including those of other apps."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from .views import player_of


def player(request: HttpRequest) -> dict[str, Any]:
    """Return the visitor's player, looked up when it is shown; None for visitors without one."""
    return {"player": SimpleLazyObject(lambda: player_of(request.user))}
