"""The figures of cached rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from components.kit.figures import Ask, Event, Family, Gauges, Reading
from components.kit.keyspace import BUCKETS
from components.kit.stored import number_of, text_of
from components.services.rows.keys import RowKeys
from components.services.rows.members import name_and_key

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
        *(ask for tag in BUCKETS for ask in _asks(RowKeys(tag))),
    ]
    now, state = int(seconds) * 1_000_000 + int(micros), State(Counter(), {})
    for stored in answers[::2]:
        state.counts.update({text_of(name): number_of(count) for name, count in stored.items()})
    for head in answers[1::2]:
        for each, due in head:
            name = name_and_key(text_of(each))[0]
            state.late[name] = max(state.late.get(name, 0.0), (now - due) / 1e6)
    return state


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


def _asks(keys: RowKeys) -> list[Ask]:
    def first(pipe: Any) -> None:
        pipe.zrange(keys.schedule, 0, 0, withscores=True)

    return [Ask(keys.counts, lambda pipe: pipe.hgetall(keys.counts)), Ask(keys.schedule, first)]
