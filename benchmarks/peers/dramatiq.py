"""dramatiq: one process of eight threads, its default number."""

from __future__ import annotations

from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from redis import Redis

from benchmarks.bench import mark, url
from benchmarks.peers.base import FIRST, LAST, Guarantees, Peer

broker = RedisBroker(url=url())
dramatiq.set_broker(broker)


@dramatiq.actor
def noop() -> None: ...


@dramatiq.actor
def note(name: str) -> None:
    mark(name)


class Dramatiq(Peer):
    how = "1 process, 8 threads"
    share = 0.25
    guarantees = Guarantees(acks="yes", retries="on (20)", results="off", priorities="within a worker")

    def enqueue(self, count: int) -> None:
        note.send(FIRST)
        for _ in range(count - 2):
            noop.send()
        note.send(LAST)

    def worker(self) -> Sequence[str]:
        return ["-m", "dramatiq", __name__, "--processes", "1", "--threads", "8"]

    def is_done(self, redis: Redis) -> bool:
        return redis.hlen("dramatiq:default.msgs") == 0  # a message leaves it when it is acknowledged
