"""dramatiq: one process of eight threads, its default number."""

from __future__ import annotations

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.harness import mark, url
from benchmarks.peers import Peer, one_by_one

broker = RedisBroker(url=url())
dramatiq.set_broker(broker)


@dramatiq.actor
def noop() -> None: ...


@dramatiq.actor
def note(name: str) -> None:
    mark(name)


PEER = Peer(
    one_by_one(note.send, noop.send),
    ["-m", "dramatiq", __name__, "--processes", "1", "--threads", "8"],
    # A message is removed from this hash when it is acknowledged.
    lambda redis: redis.hlen("dramatiq:default.msgs") == 0,
)
