"""
RQ: SimpleWorker, which runs jobs in its own process, and the default worker, which forks for each job.

SimpleWorker is the faster one, and the ratio is against it.
"""

from __future__ import annotations

from rq import Queue

from benchmarks.harness import client, mark, url
from benchmarks.peers import Peer, one_by_one

queue = Queue("default", connection=client())


def noop() -> None: ...


def _peer(kind: str) -> Peer:
    return Peer(
        one_by_one(lambda name: queue.enqueue(mark, name), lambda: queue.enqueue(noop)),
        ["-m", "rq.cli", "worker", "--url", url(), "--worker-class", kind, "--quiet", "default"],
        lambda redis: not queue.count and not queue.started_job_registry.get_job_count(cleanup=False),
    )


SIMPLE, FORKING = _peer("rq.worker.SimpleWorker"), _peer("rq.worker.Worker")
