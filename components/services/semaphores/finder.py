"""The finder of semaphores, by name."""

from __future__ import annotations

from components.kit.cards import Link
from components.kit.finders import FinderReading, Found, ask_names, best_of
from components.kit.keyspace import BUCKETS
from components.services.semaphores.keys import index
from components.templatetags.control_room import legible


def find(text: str) -> FinderReading:
    """Find semaphores that were used within a month."""
    answers = yield ask_names([*map(index, BUCKETS)], text)
    return [Found(Link("semaphore", legible(name), semaphore=name)) for name in best_of(answers, text)]
