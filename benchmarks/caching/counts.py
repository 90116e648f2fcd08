"""
Round trips and queries of a batch, counted where they are sent: trips by a proxy on the way to the server, queries
in Django's connection. That costs time, so nothing is timed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import URL, Bench, folder, url
from benchmarks.caching.models import Item, Offer
from benchmarks.caching.reader import Reader
from benchmarks.trips import TripCounter

_BATCHES = 5
_ROWS, _SLICE = 10_000, 250  # of each model, and scheduled at once: enough for so many full batches


@dataclass(frozen=True)
class Counts:
    """For a batch of ours of two models, and for a row of the book's."""

    trips: float
    queries: int
    book_trips: int
    book_queries: int


def count(bench: Bench) -> Counts:
    """Of batches in which every row is due."""
    own = folder() / "trips"
    with (
        TripCounter(Path(url().removeprefix("unix://").partition("?")[0]), own) as counter,
        Reader("Book", {URL: counter.url}) as reader,
    ):
        reader.do("connect")
        for first in range(1, _ROWS, _SLICE):  # in turn, so that both are in each batch
            for rows in (Item.cached, Offer.cached):
                rows.schedule_many(range(first, first + _SLICE), 3_600)
        begun = counter.trips
        made, queries = reader.do("batches", _BATCHES)
        trips = (counter.trips - begun) / made
        bench.redis.flushall()
        bench.redis.zadd("delay:", {"1": 3_600, "2": 3_600})
        bench.redis.zadd("schedule:", {"1": 1, "2": 2})
        begun = counter.trips
        book_queries = reader.do("book_row")
        return Counts(trips, queries, counter.trips - begun, book_queries)
