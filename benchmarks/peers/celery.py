"""Celery: the solo pool, the fastest of its pools for tasks that do nothing in one process."""

from __future__ import annotations

from celery import Celery

from benchmarks.harness import mark, url
from benchmarks.peers import Peer, one_by_one

app = Celery("benchmark", broker=url().replace("unix://", "redis+socket://", 1))


@app.task
def noop() -> None: ...


@app.task
def note(name: str) -> None:
    mark(name)


_command = ["-m", "celery", "-A", __name__, "worker", "--pool", "solo", "-l", "WARNING"]
PEER = Peer(
    one_by_one(note.delay, noop.delay),
    [*_command, "--without-gossip", "--without-mingle"],
    lambda redis: not redis.llen("celery") and not redis.hlen("unacked"),
)
