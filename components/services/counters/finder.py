"""The finder of counters, by name."""

from __future__ import annotations

from components.kit.cards import Link
from components.kit.finders import FinderReading, Found, ask_names, best_of
from components.kit.keyspace import BUCKETS
from components.services.counters.keys import CounterKeys
from components.templatetags.control_room import legible


def find(text: str) -> FinderReading:
    """Find counters."""
    answers = yield ask_names([CounterKeys(tag).names for tag in BUCKETS], text)
    return [Found(Link("chart", legible(name), counter=name)) for name in best_of(answers, text)]
