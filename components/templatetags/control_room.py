"""
Template tags and filters of the control room for numbers, instants, durations, names and JSON.

Instants are shown in the current time zone, to the second, without the date if it is today, and with their
distance from now beside them.
"""

import re
from collections.abc import Sequence, Sized
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import conditional_escape, strip_tags
from django.utils.safestring import SafeString, mark_safe

from components import formatting

register = template.Library()
for _name in (
    "amount", "called", "compact_json", "duration", "grouped", "legible", "memory", "pretty_json", "rounded", "since",
    "took",
):  # fmt: skip
    register.filter(_name, getattr(formatting, _name))

_PART_OF_TABLE = re.compile(r"<(tr|th|td)\b([^>]*)>")


@register.simple_tag(takes_context=True)
def page_url(context: template.Context, name: str, **query: object) -> str:
    """Return the address of a page of this component: {% page_url "tasks" alias=alias queue=queue.name %}."""
    return str(context["page_url"](name, **query))


@register.inclusion_tag("admin/components/verb.html", takes_context=True)
def verb(
    context: template.Context, name: str, *, about: str = "", label: str | Promise = "", **query: object
) -> dict[str, Any]:
    """
    Show a link to the page of a verb, for users who may do it: {% verb "evict" about=holder semaphore=info.name %}.

    *about* tells users of screen readers what the link refers to. *label* replaces the verb's own text.
    """
    found = getattr(context["may"], name, None)
    if not found:
        return {}
    url = context["page_url"](name, **query)
    return {"url": url, "label": label or found.label, "about": about, "deletes": found.deletes}


@register.simple_block_tag(takes_context=True)
def table(
    context: template.Context,
    content: str,
    caption: str,
    *columns: str | Promise | Sequence[str | Promise],
    key: str = "",
    label: str = "",
    shown: Sized = (),
    total: int = 0,
    part: str = "the first",
    is_named: bool = True,
) -> str:
    """
    Show a table with its caption and heads, in a region that can be scrolled with the keyboard.

    *columns* are their names; "#" after a name says that the column contains numbers. An empty name is left out, and
    a list adds several columns. Content without a row is shown across the table. live.js uses *key*. *label* names
    the region; by default the caption does. If fewer are *shown* than there are in *total*, the caption says so.

    The caption is not shown if it is the title of the page, or if not *is_named*. Where there is little room,
    room.css shows each row as a card. So each cell carries the name of its column.
    """
    names = [name for each in columns for name in ([each] if isinstance(each, str | Promise) else each)]
    heads = [(name, after == "#") for name, after in pairwise([*names, ""]) if name and name != "#"]
    scope = {
        "content": _labelled(content, [name for name, _is_number in heads]),
        "caption": caption,
        "label": label or caption,
        "is_named": is_named and (str(caption) != context.get("title") or total > len(shown)),
        "columns": heads,
        "has_rows": "<tr" in content,
        "key": key,
        "shown": len(shown),
        "total": total,
        "part": part,
    }
    return render_to_string("admin/components/table.html", scope)


def _labelled(rows: str, heads: Sequence[str | Promise]) -> SafeString:
    """
    Give the rows and cells of a table their roles, and each cell the name of its column. Browsers may take a row
    that is shown as a card for something else than a row, unless it has its role.
    """
    columns = [strip_tags(conditional_escape(str(head))).replace('"', "&quot;") for head in heads]
    names = iter(columns)

    def labelled(part: re.Match[str]) -> str:
        nonlocal names
        element, attributes = part.groups()
        if element == "tr":
            names = iter(columns)
            return f'<tr{attributes} role="row">'
        role = "rowheader" if element == "th" else "cell"
        return f'<{element}{attributes} role="{role}" data-label="{next(names, "")}">'

    return mark_safe(_PART_OF_TABLE.sub(labelled, rows))


@register.filter
def function(path: str) -> str:
    """Return the name of a function without its module."""
    return path.rpartition(".")[2]


@register.filter
def then(condition: object, text: str) -> str:
    """Return *text* if the condition is true, else "": {% table … may.evict|then:_("Action") … %}."""
    return text if condition else ""


@register.inclusion_tag("admin/components/moment.html")
def moment(instant: datetime | None) -> dict[str, Any]:
    """Show an instant as <time>, with its distance from now; a dash for None."""
    if instant is None:
        return {"instant": None}
    now = timezone.localtime(datetime.now(UTC))
    try:
        local = timezone.localtime(instant)
    except OverflowError:  # at the ends of the calendar, a time zone may have no such day
        local = instant
    seconds = (now - local).total_seconds()
    return {
        "instant": local,
        "is_today": local.date() == now.date(),
        "is_past": seconds >= 0,
        "distance": formatting.duration(round(abs(seconds))),
    }
