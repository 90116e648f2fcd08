"""The figures of locks."""

from __future__ import annotations

from time import time

from components.kit.figures import Ask, Event, Family, Gauges
from components.kit.keyspace import BUCKETS
from components.services.locks.keys import index

EVENTS = (
    Event("locks:acquired", "components_locks_acquired", "Locks that were acquired."),
    Event("locks:waited", "components_locks_waited", "Calls that had to wait for a lock."),
    Event("locks:lost", "components_locks_lost", "Locks whose time ended before they were released."),
    Event("locks:wait", "components_lock_wait_seconds", "How long calls that waited did.", is_histogram=True),
)


def gauges() -> Gauges:
    """Count the held locks; by this machine's clock, since asking for the server's would be another round trip."""
    held = Family("components_locks_held", "Locks that are held, except those at keys of the project's own.")
    now = f"({int(time() * 1_000)}"
    answers = yield [_ask(index(tag), now) for tag in BUCKETS]
    held.add(sum(answers))
    return [held]


def _ask(key: str, now: str) -> Ask:
    return Ask(key, lambda pipe: pipe.zcount(key, now, "+inf"))
