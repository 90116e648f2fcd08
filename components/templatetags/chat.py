"""The tag that shows on every page of a site how many messages of the visitor's chats are unread."""

from typing import Any

from django import template

from components.services.chat.page.badge import badge_of

register = template.Library()


@register.inclusion_tag("components/chat/badge.html", takes_context=True)
def chat_badge(context: template.Context) -> dict[str, Any]:
    """
    Show the numbers of unread messages and mentions; nothing for visitors who are not logged in, without a request,
    and while Redis is unavailable.
    """
    return badge_of(getattr(context.get("request"), "user", None))
