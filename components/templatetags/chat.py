"""The tag that shows on every page of a site how many messages of the visitor's chats are unread."""

from __future__ import annotations

from typing import Any

from django import template

from components.exceptions import RedisUnavailable
from components.services.chat import Inbox

register = template.Library()


@register.inclusion_tag("components/chat/badge.html", takes_context=True)
def chat_badge(context: template.Context) -> dict[str, Any]:
    """
    Show the numbers of unread messages and mentions; nothing for visitors who are not logged in, without a request,
    and while Redis is unavailable.
    """
    user = getattr(context.get("request"), "user", None)
    if user is None or not user.is_authenticated:
        return {"is_shown": False}
    try:
        return {"is_shown": True, "unread": Inbox(str(user.pk)).unread()}
    except RedisUnavailable:
        return {"is_shown": True, "unread": None}
