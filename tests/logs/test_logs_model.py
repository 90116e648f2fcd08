"""Consumers of logs in any order of claims, lost leases, deaths and flushes: each chunk counts exactly once."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import ChunksLost, LogsFull
from components.services.logs import Aggregation, Chunk, Consumer, LogStream
from tests.support.logs import append, bytes_in_flight, joined, let_leases_pass, stream

CHUNKS = 40
LIMIT = 900  # bytes: a few chunks
STEPS = ("append", "claim", "count", "flush", "beat", "die", "pause", "give back")
OFTEN = (8, 6, 8, 5, 1, 1, 4, 1)


class Worker:
    """A consumer, with what it has counted and not flushed."""

    def __init__(self, aggregation: Aggregation) -> None:
        self.consumer: Consumer = aggregation.consumer()
        self.waiting: list[Chunk] = []
        self.batch: list[Chunk] = []
        self.sums: Counter[str] = Counter()

    def claim(self, limit: int) -> bool:
        found = self.consumer.claim(limit)
        self.waiting += found
        return bool(found)

    def count(self, limit: int) -> None:
        for chunk in self.waiting[:limit]:
            self.batch.append(chunk)
            self.sums[str(chunk.start)] += chunk.lines
        del self.waiting[:limit]

    def flush(self) -> None:
        if not self.batch:
            return
        try:
            self.consumer.flush(self.batch, {"starts": self.sums})
        except ChunksLost as error:
            self.waiting += [each for each in self.batch if each.id not in error.lost]
        self.batch, self.sums = [], Counter()


class House:
    """Producers, an aggregation and three workers of it; another aggregation that goes on beside."""

    def __init__(self, redis: Redis) -> None:
        redis.flushall()
        self.redis, self.stream = redis, stream(LIMIT)
        self.aggregation, self.other = joined(tries=1_000), joined("other").consumer()
        self.workers = [Worker(self.aggregation) for _ in range(3)]
        self.appended = 0

    def do(self, step: str, which: int, number: int) -> None:
        worker = self.workers[which]
        acts: dict[str, Callable[[], Any]] = {
            "append": self.append,
            "claim": lambda: worker.claim(number),
            "count": lambda: worker.count(number),
            "flush": worker.flush,
            "beat": worker.consumer.beat,
            "die": lambda: self.workers.__setitem__(which, Worker(self.aggregation)),
            "pause": lambda: let_leases_pass(self.redis, self.aggregation, list(worker.consumer.held)),
            "give back": lambda: self.give_back(worker),
        }
        acts[step]()
        status = self.stream.status()
        assert status.bytes == bytes_in_flight(self.redis) <= LIMIT

    def append(self) -> None:
        if self.appended < CHUNKS:
            try:
                append(self.stream, self.appended, wait=0)
                self.appended += 1
            except LogsFull:
                self.drain_other()

    def drain_other(self) -> None:
        while chunks := self.other.claim():
            self.other.flush(chunks, {})

    def give_back(self, worker: Worker) -> None:
        worker.consumer.release()
        worker.waiting, worker.batch, worker.sums = [], [], Counter()

    def finish(self) -> None:
        """All that is left is counted by a worker that lives."""
        last = Worker(self.aggregation)
        while self.appended < CHUNKS or self.stream.status().chunks:
            self.append()
            self.drain_other()
            let_leases_pass(self.redis, self.aggregation)
            last.claim(5)
            last.count(5)
            last.flush()


@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_each_chunk_counts_exactly_once(redis: Redis, seed: int) -> None:
    """Long walks at random: an error takes many steps, which short ones seldom make."""
    house, chance = House(redis), Random(seed)

    for step in chance.choices(STEPS, OFTEN, k=200):
        house.do(step, chance.randrange(3), chance.randint(1, 4))
    house.finish()

    counted = house.aggregation.table("starts")
    assert len(counted) == CHUNKS
    assert set(counted.values()) == {10}
    assert LogStream().status().bytes == 0
    assert redis.keys("*:chunk:*") == redis.keys("*:counted") == []
