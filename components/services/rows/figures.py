"""The figures of cached rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

from components.kit.figures import Ask, Event, Family, Gauges
from components.kit.keyspace import BUCKETS
from components.kit.stored import number_of, text_of
from components.services.rows.keys import RowKeys

EVENTS = (
    Event("rows:hit", "components_rows_found", "Rows that were read from Redis.", "name"),
    Event("rows:missed", "components_rows_missed", "Rows that were asked for and were not in Redis.", "name"),
)


def gauges() -> Gauges:
    """Count the rows on the schedule, and find the one that has been due for longest."""
    rows = Family("components_rows_scheduled", "Rows on the schedule.")
    failing = Family("components_rows_failing", "Rows that could not be loaded at the last try.")
    late = Family("components_rows_late_seconds", "For how long the most overdue row has been due.")
    (seconds, micros), *answers = yield [
        Ask(RowKeys(BUCKETS[0]).schedule, lambda pipe: pipe.time()),
        *(ask for tag in BUCKETS for ask in _asks(RowKeys(tag))),
    ]
    now, counts = int(seconds) * 1_000_000 + int(micros), Counter[str]()
    for stored in answers[::2]:
        counts.update({text_of(name): number_of(count) for name, count in stored.items()})
    for name in sorted(counts):
        if ":" not in name:
            rows.add(counts[name], name=name)
            failing.add(counts[f"{name}:failing"], name=name)
    late.add(max((max(0.0, now - due) for head in answers[1::2] for _member, due in head), default=0.0) / 1e6)
    return [rows, failing, late]


def _asks(keys: RowKeys) -> list[Ask]:
    def first(pipe: Any) -> None:
        pipe.zrange(keys.schedule, 0, 0, withscores=True)

    return [Ask(keys.counts, lambda pipe: pipe.hgetall(keys.counts)), Ask(keys.schedule, first)]
