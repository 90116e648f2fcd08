"""Ours, by Django's Tasks API from end to end: Task.enqueue and manage.py runworker with its defaults."""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis

from benchmarks import tasks
from benchmarks.peers.base import FIRST, LAST, Guarantees, Peer
from components.services.queues import TaskQueue


class Ours(Peer):
    how = "runworker"
    guarantees = Guarantees(
        acks="yes, leases renewed",
        retries="on (5 attempts)",
        results="on (1 day)",
        priorities="yes, -100 to 100",
    )

    def enqueue(self, count: int) -> None:
        tasks.note.enqueue(FIRST)
        for _ in range(count - 2):
            tasks.noop.enqueue()
        tasks.note.enqueue(LAST)

    def worker(self) -> Sequence[str]:
        return ["manage.py", "runworker", "--no-reload", "--verbosity", "0"]

    def is_done(self, redis: Redis) -> bool:
        stats = TaskQueue().stats("default")
        return not stats.ready and not stats.running


class OursNapping(Ours):
    """Tasks that wait for 10 ms, as for an answer from somewhere, 32 at a time."""

    how = "runworker --concurrency 32"
    CONCURRENCY, SECONDS = 32, 0.01

    def enqueue(self, count: int) -> None:
        tasks.note.enqueue(FIRST)
        for _ in range(count - 2):
            tasks.nap.enqueue(self.SECONDS)
        tasks.note.enqueue(LAST)

    def worker(self) -> Sequence[str]:
        return [*super().worker(), "--concurrency", str(self.CONCURRENCY)]
