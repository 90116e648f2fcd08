"""
{% counter_chart %}: a chart of counters, for any page of the admin.

    {% load charts %}
    {% block extrahead %}{{ block.super }}{% chart_media %}{% endblock %}
    {% counter_chart "sales" "sales-errors" span=86400 title="Sales of a day" %}
    {% counter_chart "requests:*" top=5 %}

The counters are read while the page is rendered, in one or two round trips to each node of Redis. If that fails, a
sentence replaces the chart. Users who may view counters get links to their pages below it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zlib import crc32

from django import template
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.translation import gettext

from components.conf import conf
from components.exceptions import InvalidName, InvalidValue, RedisUnavailable
from components.services.counters import CounterReader, Histogram, Sample, Series
from components.services.counters.charts.figures import (
    MOST_LINES,
    Chart,
    Percentiles,
    charts_of,
    counted_line,
    percentile_chart,
    sparkline,
)
from components.services.counters.charts.scales import about, rate, spent
from components.services.counters.charts.scales import total as _total
from components.services.counters.charts.spans import Span
from components.services.counters.measuring import name_of_times
from components.services.counters.precisions import plan
from components.services.counters.series import EVERY

register = template.Library()
register.filter("sparkline", sparkline)
register.filter("rate", rate)

_LEAST = 60  # seconds: histograms have no shorter slices
_LATELY = 6 * 3_600  # seconds that the runs of a task are looked at for, or longer


@register.inclusion_tag("admin/components/counters/media.html", takes_context=True)
def chart_media(context: template.Context) -> dict[str, Any]:
    """Return the elements that charts need in the head of a page, once."""
    return {"csp_nonce": context.get("csp_nonce"), "layout": context.get("layout")}


@register.inclusion_tag("admin/components/counters/placed.html", takes_context=True)
def counter_chart(
    context: template.Context,
    *names: str,
    title: str = "",
    span: int = 7_200,
    precision: int | None = None,
    top: int = 5,
) -> dict[str, Any]:
    """Draw the counters *names* for the last *span* seconds, at most eight; of "family:*" the *top* highest."""
    # A template marks quoted text as safe HTML; these are names.
    texts = [name + "" for name in names]
    shown = {"title": title + "" or ", ".join(texts)}
    try:
        charts = _charts(texts, Span(span, precision=precision), top)
    except (InvalidValue, InvalidName, RedisUnavailable) as error:
        return {**shown, "problem": str(error)}
    return {**shown, "charts": charts, "link": _link(context.get("request")), "time_query": f"&span={span}"}


def _charts(names: Sequence[str], span: Span, top: int) -> list[Chart]:
    found = dict[str, None]()
    for name in names:
        if name.endswith(EVERY):
            found |= dict.fromkeys(each.name for each in span.top(name.removesuffix(EVERY), top))
        else:
            found[name] = None
    chosen = list(found)[:MOST_LINES]
    return charts_of(*span.lines(chosen)) if chosen else []


def _link(request: HttpRequest | None, page: str = "chart", **query: str) -> str:
    """Return the address of a page of counters; "" if there is none, or if the user may not see it."""
    user = getattr(request, "user", None)
    if not user or not user.has_perm("components.view_counter"):
        return ""
    try:
        address = reverse(
            f"admin:components_counter_{page}", current_app=getattr(request, "current_app", None)
        )
    except NoReverseMatch:
        return ""
    return f"{address}?{urlencode(query)}" if query else address


@register.inclusion_tag("admin/components/counters/history.html", takes_context=True)
def measured_history(
    context: template.Context,
    measured: Sequence[tuple[str, str, str]],
    *,
    of: str,
    title: str,
    span: int = 7_200,
) -> dict[str, Any]:
    """
    Draw what was measured in the last *span* seconds: how often, in one chart, and how long, in one for each.

    *measured* has each event that took() measures *of* this thing, the words for how often, and those for how long.
    Without COUNT_SERVICES, a sentence says how to switch measuring on.
    """
    shown: dict[str, Any] = {"title": title, "is_on": conf().count_services}
    words = {name_of_times(event, of): (often, long) for event, often, long in measured}
    names, reader = list(words), CounterReader()
    try:
        precision, between = Span(span).asked()
        precision = max(precision, _LEAST)
        found, marks = reader.read_marked(names, precision, **between)
        slices = reader.histogram_slices(names, precision, **between)
    except (InvalidName, InvalidValue, RedisUnavailable) as error:
        return {**shown, "problem": str(error)}
    like = found[names[0]]
    counts = [
        counted_line(often, like, {each.at: each.histogram.count or None for each in slices[name]})
        for name, (often, _long) in words.items()
    ]
    times = [
        percentile_chart(long, found[name], slices[name], marks) for name, (_often, long) in words.items()
    ]
    charts = [Chart(counts, title, marks), *times]
    return {**shown, "charts": [chart for chart in charts if not chart.is_empty]}


@register.inclusion_tag("admin/components/counters/runs.html", takes_context=True)
def run_history(
    context: template.Context, name: str, own: timedelta | None = None, is_over: bool = True
) -> dict[str, Any]:
    """
    Draw how long the runs of the task *name* took lately, and compare *own*, the time of one of them, with all. It
    costs one round trip. Without COUNT_SERVICES nothing is read, and a sentence says how to switch measuring on.
    """
    if not conf().count_services:
        return {"is_on": False}
    counter, chosen = name_of_times("runs", name), plan()
    precision = chosen.finest_histogram(_LATELY)
    shown = {"is_on": True, "seconds": precision * chosen.samples, "is_over": is_over}
    try:
        slices = CounterReader().histogram_slices([counter], precision)[counter]
    except (InvalidName, RedisUnavailable) as error:
        return {**shown, "problem": str(error)}
    every = sum((each.histogram for each in slices), Histogram())
    like = Series(
        [Sample(each.at, None) for each in slices],
        name=counter,
        precision=precision,
        since=slices[0].at,
        until=datetime.now(UTC),
        total=0,
    )
    seconds = own.total_seconds() if own is not None else None
    return {
        **shown,
        "all": every,
        "median": about(every.percentile(50)) if every.count > 1 else spent(every.total),
        "most": about(every.percentile(95)),
        "own": seconds,
        "longer_than": int(every.percent_below(round((seconds or 0) * 1_000_000))),
        "chart": percentile_chart(gettext("How long runs took"), like, slices, percents=(50, 95)),
        "link": _link(context.get("request"), "time", of="tasks", name=counter.partition(":")[2]),
        "csp_nonce": context.get("csp_nonce"),
    }


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
def total(count: int, of: str | Series) -> str:
    """Write the total of a counter, which may be named, with its unit; of a percentile two digits."""
    return about(count, of.unit) if isinstance(of, Percentiles) else _total(count, of)
