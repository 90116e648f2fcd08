"""A turn of fetching: a person in many chats gets what is new; in how much time, and by how many round trips."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from django.test.utils import override_settings

from benchmarks.bench import URL, Bench, url
from benchmarks.chatting.base import Store
from benchmarks.chatting.trips import TripCounter
from benchmarks.chatting.turns import text
from benchmarks.crew import client

CHATS = 500  # of one person
_UNREAD = 2  # messages in each of some chats


@dataclass(frozen=True)
class Fetch:
    """What it takes a person in 500 chats to get what is new, and to say that he has read it."""

    fetch_seconds: float
    fetch_trips: int
    read_seconds: float
    read_trips: int


def fetch(bench: Bench, store: Store, busy: int, times: int) -> Fetch:
    """*busy* of his chats have something new each time."""
    bench.clear()
    for number in range(CHATS):
        store.create(f"chat-{number}", ["reader", "speaker"])
    store.acknowledge("reader", store.fetch("reader"))
    fetches, reads = [], []
    for _ in range(times):
        _say(store, busy)
        began = time.monotonic()
        found = store.fetch("reader")
        fetched = time.monotonic()
        store.acknowledge("reader", found)
        fetches.append(fetched - began)
        reads.append(time.monotonic() - fetched)
    _say(store, busy)
    fetch_trips, read_trips = _trips(store)
    return Fetch(median(fetches), fetch_trips, median(reads), read_trips)


def _say(store: Store, busy: int) -> None:
    for number in range(busy):
        for _ in range(_UNREAD):
            store.send(f"chat-{number}", "speaker", text())


def _trips(store: Store) -> tuple[int, int]:
    """How often Redis is asked to fetch, and to acknowledge, when connections are open and scripts are known."""
    path = Path(url().removeprefix("unix://").partition("?")[0])
    # Each at a place of its own: connections to the one before are kept, and would not be counted here.
    own = path.with_name(f"trips-{time.monotonic_ns()}")
    with TripCounter(path, own) as counter, _at(counter.url):
        store.acknowledge("nobody", store.fetch("nobody"))
        begun = counter.trips
        found = store.fetch("reader")
        fetched = counter.trips
        store.acknowledge("reader", found)
        return fetched - begun, counter.trips - fetched


@contextmanager
def _at(address: str) -> Iterator[None]:
    """All clients of this process go there."""
    before = url()
    caches = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": address}}
    try:
        os.environ[URL] = address
        client.cache_clear()
        with override_settings(CACHES=caches):
            yield
    finally:
        os.environ[URL] = before
        client.cache_clear()
