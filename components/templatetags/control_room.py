"""
Template tags and filters of the control room for numbers, instants, durations, names and JSON.

Instants are shown in the current time zone, to the second, without the date if it is today, and with their
distance from now beside them.
"""

import json
import re
from collections.abc import Mapping, Sequence, Sized
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from django import template
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.html import conditional_escape, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

register = template.Library()

#: Units of time, by the name that they have in code.
UNITS = {
    "d": _("%(number)s d"),
    "h": _("%(number)s h"),
    "min": _("%(number)s min"),
    "s": _("%(number)s s"),
    "ms": _("%(number)s ms"),
    "µs": _("%(number)s µs"),
}
_LONGEST_CALL = 200
_PART_OF_TABLE = re.compile(r"<(tr|th|td)\b([^>]*)>")
_SIZES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@register.simple_tag(takes_context=True)
def page_url(context: template.Context, name: str, **query: object) -> str:
    """Return the address of a page of this component: {% page_url "tasks" alias=alias queue=queue.name %}."""
    return str(context["page_url"](name, **query))


@register.simple_tag
def overview_first(app_list: Sequence[dict[str, Any]]) -> str:
    """Put the overview before all other models of its app, in the admin's list of apps."""
    for app in app_list:
        app["models"].sort(
            key=lambda model: app["app_label"] != "components" or model["object_name"] != "Overview"
        )
    return ""


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


@register.simple_block_tag
def table(
    content: str,
    caption: str,
    *columns: str | Promise | Sequence[str | Promise],
    key: str = "",
    label: str = "",
    shown: Sized = (),
    total: int = 0,
    part: str = "the first",
) -> str:
    """
    Show a table with its caption and heads, in a region that can be scrolled with the keyboard.

    *columns* are their names; "#" after a name says that the column contains numbers. An empty name is left out, and
    a list adds several columns. Content without a row is shown across the table. live.js uses *key*. *label* names
    the region; by default the caption does. If fewer are *shown* than there are in *total*, the caption says so.

    Where there is little room, components.css shows each row as a card. So each cell carries the name of its column.
    """
    names = [name for each in columns for name in ([each] if isinstance(each, str | Promise) else each)]
    heads = [(name, after == "#") for name, after in pairwise([*names, ""]) if name and name != "#"]
    scope = {
        "content": _labelled(content, [name for name, _is_number in heads]),
        "caption": caption,
        "label": label or caption,
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
        "distance": duration(round(abs(seconds))),
    }


@register.filter
def duration(seconds: float | None) -> str:
    """Write 3725 as "1 h 2 min": the two largest units; tenths below ten seconds, milliseconds below one."""
    if seconds is None:
        return "\N{EN DASH}"
    if 0 < seconds < 1:
        return measured(round(seconds * 1000), "ms")
    if seconds < 10:
        return measured(round(seconds, 1), "s")
    whole = int(seconds)
    for (size, unit), (smaller, smaller_unit) in pairwise(_SIZES):
        if whole >= size:
            larger = measured(whole // size, unit)
            rest = whole % size // smaller
            return f"{larger} {measured(rest, smaller_unit)}" if rest else larger
    return measured(whole, "s")


def measured(number: float, unit: str) -> str:
    """Write a number with a unit of time, and without a fraction of zero: 1.0 and "s" as "1 s"."""
    return str(UNITS[unit]) % {"number": amount(number)}


@register.filter
def took(seconds: float | None) -> str:
    """Write a duration as duration() does, but below ten milliseconds with two places: 0.00031 as "0.31 ms"."""
    if seconds is None or seconds >= 0.01:
        return duration(seconds)
    return measured(round(seconds * 1000, 2), "ms")


@register.filter
def since(later: datetime | None, earlier: datetime | None) -> str:
    """Write the time from *earlier* to *later*; a dash if either is unknown."""
    return duration(max((later - earlier).total_seconds(), 0.0) if later and earlier else None)


@register.filter
def memory(size: int | None) -> str:
    """Write a number of bytes as "1.2 KB"."""
    return "\N{EN DASH}" if size is None else filesizeformat(size)


@register.filter
def grouped(number: int) -> str:
    """Write 1234567 as "1,234,567", in the format of the active language."""
    return number_format(number, force_grouping=True)


@register.filter
def rounded(number: float) -> str:
    """Write 1234.5 as "1,234", for figures whose fractions do not matter."""
    return grouped(round(number))


@register.filter
def amount(number: float) -> str:
    """Write a figure with at most two places: 1234.0 as "1,234", 0.125 as "0.13"."""
    rounded = round(number, 2)
    return number_format(int(rounded) if rounded == int(rounded) else rounded, force_grouping=True)


@register.filter
def pretty_json(value: Any) -> str:
    """Write *value* as indented JSON."""
    return _dumped(value, indent=2)


@register.filter
def compact_json(value: Any) -> str:
    """Write *value* as JSON in one line."""
    return _dumped(value)


@register.filter
def called(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Write the arguments of a call: [9] and {"to": "Jill"} as '9, to="Jill"'. Of long ones, write the start."""
    given = ", ".join([*map(_dumped, args), *(f"{name}={_dumped(value)}" for name, value in kwargs.items())])
    return given if len(given) <= _LONGEST_CALL else f"{given[:_LONGEST_CALL]}\N{HORIZONTAL ELLIPSIS}"


def _dumped(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False)
    except RecursionError:
        return gettext("(It is nested too deeply to be shown.)")


@register.filter
def legible(text: str) -> str:
    """
    Return *text* with invisible characters escaped, such as a line feed as \n: control characters, marks that change
    the direction of text, and spaces at the ends.
    """
    start, end = len(text) - len(text.lstrip(" ")), len(text.rstrip(" "))
    return "".join(
        char if char.isprintable() and start <= at < end else _written_out(char)
        for at, char in enumerate(text)
    )


def _written_out(char: str) -> str:
    return r"\x20" if char == " " else char.encode("unicode_escape").decode()
