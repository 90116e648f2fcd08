"""The card of cached rows: how many are on the schedule, and which are late or cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.kit.cards import MOST_LINES, Badge, Card, CardReading, Line, Link, Past, and_more, beyond
from components.services.rows.figures import read_state
from components.services.rows.members import LEASE
from components.templatetags.control_room import duration, grouped, legible

PAST = Past(
    "rows:hit",
    ngettext_lazy(
        "%(count)s row was read from the cache in the last %(span)s",
        "%(count)s rows were read from the cache in the last %(span)s",
        "number",
    ),
)


def card() -> CardReading:
    """Count the rows on the schedule, and find those that are late or fail."""
    state = yield from read_state()
    count = sum(state.counts[name] for name in state.names)
    failing = {name: number for name in state.names if (number := state.counts[f"{name}:failing"])}
    late = {name: seconds for name, seconds in state.late.items() if seconds > LEASE}
    return Card(
        count,
        ngettext("row is reloaded regularly", "rows are reloaded regularly", count),
        [
            (gettext("Most overdue"), duration(max(late.values(), default=None))),
            (gettext("Could not be loaded"), grouped(sum(failing.values()))),
            (gettext("Models"), grouped(len(state.names))),
        ],
        [*_late(late), *_failing(failing)],
        [*_badges(late, sum(failing.values()))],
    )


def _late(late: dict[str, float]) -> list[Line]:
    found = sorted(late.items(), key=lambda pair: -pair[1])
    text = gettext("Cached rows of %(name)s are late: the first should have been loaded %(age)s ago.")
    lines = [
        Line(
            text % {"name": legible(name), "age": duration(seconds)},
            Link("model", gettext("Show the rows"), model=name),
            command="manage.py cacherows",
        )
        for name, seconds in found[:MOST_LINES]
    ]
    more = ngettext(
        "Cached rows of %(count)s more model are late.",
        "Cached rows of %(count)s more models are late.",
        beyond(found),
    )
    return and_more(lines, found, Line(more % {"count": grouped(beyond(found))}))


def _failing(failing: dict[str, int]) -> list[Line]:
    found = sorted(failing.items(), key=lambda pair: -pair[1])
    lines = []
    for name, number in found[:MOST_LINES]:
        text = ngettext(
            "%(count)s row of %(name)s could not be loaded at the last attempt.",
            "%(count)s rows of %(name)s could not be loaded at the last attempt.",
            number,
        )
        lines.append(
            Line(
                text % {"count": grouped(number), "name": legible(name)},
                Link("failing", gettext("Show the rows and their errors"), model=name),
                Link("refresh", gettext("Try again now"), model=name),
                is_serious=False,
            )
        )
    more = ngettext(
        "Rows of %(count)s more model could not be loaded.",
        "Rows of %(count)s more models could not be loaded.",
        beyond(found),
    )
    return and_more(lines, found, Line(more % {"count": grouped(beyond(found))}, is_serious=False))


def _badges(late: dict[str, float], failing: int) -> Iterator[Badge]:
    if late:
        yield Badge(gettext("rows are late"))
    if failing:
        text = ngettext("%(count)s row not loaded", "%(count)s rows not loaded", failing)
        yield Badge(text % {"count": grouped(failing)}, is_serious=False)
