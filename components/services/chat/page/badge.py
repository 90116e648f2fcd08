"""The badge that a site shows on its pages, {% chat_badge %}, and the address at which badge.js loads it again."""

import logging
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from components.exceptions import RedisNotPrivate, RedisUnavailable
from components.services.chat import Inbox

logger = logging.getLogger(__name__)


def badge_of(user: Any) -> dict[str, Any]:
    """
    Return the context of the template: what *user* has not read.

    There is no badge for visitors who are not logged in, and in a test that has no Redis; and an empty one while
    Redis is unavailable.
    """
    if user is None or not user.is_authenticated:
        return {"is_shown": False}
    try:
        return {"is_shown": True, "unread": Inbox(str(user.pk)).unread()}
    except RedisUnavailable:
        return {"is_shown": True, "unread": None}
    except RedisNotPrivate as error:
        _warn(str(error))
        return {"is_shown": False}


@cache
def _warn(said: str) -> None:
    """Log once what the tests of a site would be told at each page."""
    logger.warning("chat_badge shows nothing: %s", said)


@never_cache
@require_safe
def badge(request: HttpRequest) -> HttpResponse:
    """Show the badge alone; nothing to visitors who are not logged in."""
    return render(request, "components/chat/badge.html", badge_of(request.user))
