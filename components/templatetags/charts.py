"""
{% counter_chart %}: a chart of counters, for any page of the admin.

    {% load charts %}
    {% block extrahead %}{{ block.super }}{% chart_media %}{% endblock %}
    {% counter_chart "sales" "sales-errors" span=86400 title="Sales of a day" %}
    {% counter_chart "requests:*" top=5 %}

The counters are read while the page is rendered, in one or two round trips to each node of Redis. If that fails, a
sentence replaces the chart. Users who may view counters get links to their pages below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zlib import crc32

from django import template
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from components.exceptions import InvalidLimit, InvalidName, InvalidPrecision, InvalidRange, RedisUnavailable
from components.services.counters import Series
from components.services.counters.charts import MOST_LINES, Chart, Span
from components.services.counters.charts import sparkline as _sparkline
from components.services.counters.charts.scales import rate as _rate
from components.services.counters.charts.scales import total as _total

register = template.Library()

_EVERY = ":*"


@register.inclusion_tag("admin/components/counters/media.html", takes_context=True)
def chart_media(context: template.Context) -> dict[str, Any]:
    """Return the elements that charts need in the head of a page, once."""
    return {"csp_nonce": context.get("csp_nonce")}


@register.inclusion_tag("admin/components/counters/placed.html", takes_context=True)
def counter_chart(
    context: template.Context,
    *names: str,
    title: str = "",
    span: int = 7_200,
    precision: int | None = None,
    top: int = 5,
) -> dict[str, Any]:
    """
    Draw the counters *names* for the last *span* seconds, at most eight; "family:*" stands for the *top* highest of a
    family.
    """
    # A template marks quoted text as safe HTML; these are names.
    texts = [name + "" for name in names]
    shown = {"title": title + "" or ", ".join(texts)}
    try:
        chart = _chart(texts, Span(span, precision=precision), top)
    except (InvalidLimit, InvalidName, InvalidPrecision, InvalidRange, RedisUnavailable) as error:
        return {**shown, "problem": str(error)}
    return {**shown, "chart": chart, "link": _link(context.get("request")), "time_query": f"&span={span}"}


def _chart(names: Sequence[str], span: Span, top: int) -> Chart | None:
    found = dict[str, None]()
    for name in names:
        if name.endswith(_EVERY):
            found |= dict.fromkeys(each.name for each in span.top(name.removesuffix(_EVERY), top))
        else:
            found[name] = None
    chosen = list(found)[:MOST_LINES]
    return Chart(span.lines(chosen)) if chosen else None


def _link(request: HttpRequest | None) -> str:
    """Return the address of the page of a chart; "" if there is none, or if the user may not see it."""
    if (
        request is None
        or not hasattr(request, "user")
        or not request.user.has_perm("components.view_counter")
    ):
        return ""
    try:
        return reverse("admin:components_counter_chart", current_app=getattr(request, "current_app", None))
    except NoReverseMatch:
        return ""


@register.filter
def sparkline(series: Series) -> str:
    """Return the path of a small drawing of a counter."""
    return _sparkline(series)


@register.filter
def at(instant: datetime, chart: Chart) -> str:
    """Write an instant, with the date or the seconds if the chart's times need them."""
    local = timezone.localtime(instant)
    clock = f"{local:%H:%M:%S}" if chart.precision < 60 else f"{local:%H:%M}"
    return f"{local:%Y-%m-%d} {clock}" if chart.is_dated else clock


@register.filter
def anchor(chart: Chart, title: str) -> str:
    """Return the id of a chart's description, which a refresh does not change."""
    what = [title, str(chart.precision), *(series.name for series in chart.found)]
    return f"chart-{crc32(chr(0).join(what).encode('utf-8', 'backslashreplace')):08x}"


@register.filter
def rate(series: Series) -> str:
    """Write how fast a counter counts."""
    return _rate(series)


@register.filter
def total(count: int, name: str) -> str:
    """Write the total of the counter *name*, with its unit if it is a time."""
    return _total(count, name)
