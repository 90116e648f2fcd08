"""
RQ: SimpleWorker, which runs jobs in its own process, and the default worker, which forks for each job.

SimpleWorker is the faster one, and the ratio is against it.
"""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis
from rq import Queue

from benchmarks.bench import mark, url
from benchmarks.peers.base import FIRST, LAST, Guarantees, Peer


def noop() -> None: ...


class SimpleRQ(Peer):
    how = "SimpleWorker"
    share = 0.025
    guarantees = Guarantees(
        acks="lost job is marked failed", retries="off", results="on (500 s)", priorities="by queue"
    )
    kind = "rq.worker.SimpleWorker"

    def __init__(self, name: str, version: str) -> None:
        super().__init__(name, version)
        self._queue = Queue("default", connection=Redis.from_url(url()))

    def enqueue(self, count: int) -> None:
        self._queue.enqueue(mark, FIRST)
        for _ in range(count - 2):
            self._queue.enqueue(noop)
        self._queue.enqueue(mark, LAST)

    def worker(self) -> Sequence[str]:
        return ["-m", "rq.cli", "worker", "--url", url(), "--worker-class", self.kind, "--quiet", "default"]

    def is_done(self, redis: Redis) -> bool:
        return not self._queue.count and not self._queue.started_job_registry.get_job_count(cleanup=False)


class ForkingRQ(SimpleRQ):
    how = "a fork per job"
    share = 0.005
    kind = "rq.worker.Worker"
