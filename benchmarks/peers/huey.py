"""huey: BRPOP by one thread, which is its default worker."""

from __future__ import annotations

from collections.abc import Sequence

from huey import RedisHuey
from redis import Redis

from benchmarks.bench import mark, url
from benchmarks.peers.base import FIRST, LAST, Guarantees, Peer

app = RedisHuey("benchmark", url=url())


@app.task()
def noop() -> None: ...


@app.task()
def note(name: str) -> None:
    mark(name)


class Huey(Peer):
    how = "1 thread"
    share = 0.5
    guarantees = Guarantees(
        acks="no: lost with the worker", retries="off", results="unless None", priorities="no (other storage)"
    )

    def enqueue(self, count: int) -> None:
        note(FIRST)
        for _ in range(count - 2):
            noop()
        note(LAST)

    def worker(self) -> Sequence[str]:
        consumer = ["-m", "huey.bin.huey_consumer", f"{__name__}.app"]
        return [*consumer, "--workers", "1", "--worker-type", "thread", "--quiet"]

    def is_done(self, redis: Redis) -> bool:
        return not app.pending_count()
