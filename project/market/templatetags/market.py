"""Template filters of the market's pages."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.timesince import timeuntil

register = template.Library()


@register.filter
def span(until: datetime) -> str:
    """Return the time until an instant, in its largest unit only: "2 days"."""
    now = timezone.now()
    return timeuntil(until, now, depth=1) if until - now >= timedelta(minutes=1) else "less than a minute"
