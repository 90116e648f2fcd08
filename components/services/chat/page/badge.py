"""The badge that a site shows on its pages, {% chat_badge %}, and the address at which badge.js loads it again."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from components.exceptions import RedisUnavailable
from components.services.chat import Inbox


def badge_of(user: Any) -> dict[str, Any]:
    """
    Return the context of the template: what *user* has not read.

    There is no badge for visitors who are not logged in, and an empty one while Redis is unavailable.
    """
    if user is None or not user.is_authenticated:
        return {"is_shown": False}
    try:
        return {"is_shown": True, "unread": Inbox(str(user.pk)).unread()}
    except RedisUnavailable:
        return {"is_shown": True, "unread": None}


@never_cache
@require_safe
def badge(request: HttpRequest) -> HttpResponse:
    """Show the badge alone; nothing to visitors who are not logged in."""
    return render(request, "components/chat/badge.html", badge_of(request.user))
