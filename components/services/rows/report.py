"""
The report of cached rows: how many are on the schedule, which are late or cannot be loaded, their figures, and
finding their models by name and a row by its whole name, "items:42".
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from django.core.checks import CheckMessage, Warning
from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.formatting import duration, grouped, legible
from components.kit.decoding import number_of, text_of
from components.kit.keyspace import BUCKETS, bucket
from components.kit.readings import Ask, Event, Family, Gauges, Reading
from components.reports import (
    Card,
    CardReading,
    FinderReading,
    Found,
    Line,
    Link,
    Past,
    best,
    lines_about,
)
from components.services.rows.keys import RowKeys
from components.services.rows.members import LEASE, name_and_key
from components.services.rows.models import cached_rows
from components.services.rows.reader import RowReader

PAST = Past(
    "rows:hit",
    ngettext_lazy(
        "%(count)s row was read from the cache in the last %(span)s",
        "%(count)s rows were read from the cache in the last %(span)s",
        "number",
    ),
)
EVENTS = (
    Event("rows:hit", "components_rows_found", "Rows that were read from Redis.", "name"),
    Event("rows:missed", "components_rows_missed", "Rows that were asked for and were not in Redis.", "name"),
)


@dataclass
class State:
    """The rows on the schedule, as counted in all buckets."""

    #: The rows of each name, and "<name>:failing" for those of them that could not be loaded at the last try.
    counts: Counter[str]
    #: The seconds for which the most overdue row of each bucket has been due, by the name of that row.
    late: dict[str, float]

    @property
    def names(self) -> list[str]:
        return [name for name in sorted(self.counts) if ":" not in name]


def read_state() -> Reading[State]:
    """Count the rows on the schedule, and find those that have been due for longest."""
    (seconds, micros), *answers = yield [
        Ask(RowKeys(BUCKETS[0]).schedule, lambda pipe: pipe.time()),
        *(Ask.of("hgetall", RowKeys(tag).counts) for tag in BUCKETS),
        *(Ask.of("zrange", RowKeys(tag).schedule, 0, 0, withscores=True) for tag in BUCKETS),
    ]
    now, state = int(seconds) * 1_000_000 + int(micros), State(Counter(), {})
    for stored in answers[: len(BUCKETS)]:
        state.counts.update({text_of(name): number_of(count) for name, count in stored.items()})
    for head in answers[len(BUCKETS) :]:
        for each, due in head:
            name = name_and_key(text_of(each))[0]
            state.late[name] = max(state.late.get(name, 0.0), (now - due) / 1e6)
    return state


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
        [
            *lines_about(sorted(late.items(), key=lambda pair: -pair[1]), _late),
            *lines_about(sorted(failing.items(), key=lambda pair: -pair[1]), _failing),
        ],
    )


def _late(found: tuple[str, float]) -> Line:
    name, seconds = found
    text = gettext("Cached rows of %(name)s are late: the first should have been loaded %(age)s ago.")
    page = Link("model", gettext("Show the rows"), model=name)
    said = text % {"name": legible(name), "age": duration(seconds)}
    return Line("E122", said, page, command="manage.py cacherows")


def _failing(found: tuple[str, int]) -> Line:
    name, number = found
    text = ngettext(
        "%(count)s row of %(name)s could not be loaded at the last attempt.",
        "%(count)s rows of %(name)s could not be loaded at the last attempt.",
        number,
    )
    return Line(
        "W123",
        text % {"count": grouped(number), "name": legible(name)},
        Link("failing", gettext("Show the rows and their errors"), model=name),
        Link("refresh", gettext("Try again now"), model=name),
    )


def examine() -> Iterator[CheckMessage]:
    """Yield rows of models that are not cached here. Raises RedisUnavailable."""
    for info in RowReader().names():
        if info.name not in cached_rows():
            yield Warning(
                f"Rows of {info.name!r} are on the schedule ({info.count:,}), and no model here caches them.",
                hint='If another project uses this Redis, give each its own COMPONENTS["PREFIX"]. If the model is '
                "gone, take its rows off the schedule on the page Cached rows of the admin.",
                id="components.W121",
            )


def gauges() -> Gauges:
    """Count the rows on the schedule, and find the one that has been due for longest."""
    rows = Family("components_rows_scheduled", "Rows on the schedule.")
    failing = Family("components_rows_failing", "Rows that could not be loaded at the last try.")
    late = Family("components_rows_late_seconds", "For how long the most overdue row has been due.")
    state = yield from read_state()
    for name in state.names:
        rows.add(state.counts[name], name=name)
        failing.add(state.counts[f"{name}:failing"], name=name)
    late.add(max(state.late.values(), default=0.0))
    return [rows, failing, late]


def find(text: str) -> FinderReading:
    """Find models with rows on the schedule, and the row *text* if it is on it."""
    exact = RowKeys(bucket(text)).schedule
    due, *counts = yield [
        Ask.of("zscore", exact, text),
        *(Ask.of("hgetall", keys.counts) for keys in map(RowKeys, BUCKETS)),
    ]
    names = (text_of(name) for stored in counts for name in stored if b":" not in name)
    kind = gettext("Cached model")
    found = [Found(Link("model", legible(name), model=name), kind) for name in best(names, text)]
    return [Found(Link("row", legible(text), row=text)), *found] if due is not None else found
