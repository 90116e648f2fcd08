"""Celery: the solo pool, the fastest of its pools for tasks of no length in one process."""

from __future__ import annotations

from collections.abc import Sequence

from celery import Celery as App
from redis import Redis

from benchmarks.bench import mark, url
from benchmarks.peers.base import FIRST, LAST, Guarantees, Peer

app = App("benchmark", broker=url().replace("unix://", "redis+socket://", 1))


@app.task
def noop() -> None: ...


@app.task
def note(name: str) -> None:
    mark(name)


class Celery(Peer):
    how = "solo pool"
    share = 0.1
    guarantees = Guarantees(
        acks="before the task runs: lost with the worker", retries="off", results="off", priorities="off"
    )

    def enqueue(self, count: int) -> None:
        note.delay(FIRST)
        for _ in range(count - 2):
            noop.delay()
        note.delay(LAST)

    def worker(self) -> Sequence[str]:
        quick_start = ["--without-gossip", "--without-mingle"]
        return ["-m", "celery", "-A", __name__, "worker", "--pool", "solo", "-l", "WARNING", *quick_start]

    def is_done(self, redis: Redis) -> bool:
        return not redis.llen("celery") and not redis.hlen("unacked")
