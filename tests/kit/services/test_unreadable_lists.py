"""Lists of locks, semaphores, counters and rows, where somebody else has written names or scores that are none."""

from __future__ import annotations

import math

import pytest
from redis import Redis

from components.kit.keyspace import BUCKETS, bucket
from components.services.counters import Counter, CounterReader
from components.services.counters.keys import CounterKeys
from components.services.locks import LockReader, lock
from components.services.locks.keys import LockKeys, index
from components.services.locks.named import key_of
from components.services.rows import RowCache, RowReader, member
from components.services.rows.keys import RowKeys
from components.services.semaphores import Semaphore, SemaphoreReader
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.rows import SHAPE

NAMES = [b"", b"\xff\xfe", b"x" * 2_000, b"a\0b", b"{", b"a/b/c"]
SCORES = [math.inf, 1e300, 1e17]


@pytest.mark.parametrize("score", SCORES)
def test_locks(redis: Redis, score: float) -> None:
    held = lock("good")
    held.acquire()
    for tag in BUCKETS:
        redis.zadd(index(tag), dict.fromkeys(NAMES, score))
    of_lock = LockKeys.of(key_of("good"), redis)
    redis.zadd(of_lock.held, {b"\xff" + key_of("good").encode(): -score})

    assert [info.name for info in LockReader().held(limit=1_000)] == ["good"]
    found = LockReader().find("good")
    assert found is not None
    assert found.is_held
    assert held.owned()


@pytest.mark.parametrize("score", SCORES)
def test_semaphores(redis: Redis, score: float) -> None:
    permit = Semaphore("good", limit=3).acquire()
    keys = SemaphoreKeys("good")
    for key in (keys.holders, keys.since, keys.queue, keys.beats, keys.heavy, keys.names):
        redis.zadd(key, dict.fromkeys(NAMES, score))
    semaphore = Semaphore("good", limit=3)

    assert "good" in [info.name for info in SemaphoreReader().page(limit=1_000)]
    assert permit.id in [holder.id for holder in semaphore.holders(limit=100)]
    assert len(semaphore.waiters(limit=100)) == len(NAMES)


@pytest.mark.parametrize("score", SCORES)
def test_counters(redis: Redis, score: float) -> None:
    Counter("good:one").update(3)
    for tag in BUCKETS:
        redis.zadd(CounterKeys(tag).names, dict.fromkeys(NAMES, score))

    assert "good:one" in [info.name for info in CounterReader().page(limit=10_000)]


@pytest.mark.parametrize("score", [*SCORES, -math.inf])
def test_rows(redis: Redis, score: float) -> None:
    cache = RowCache("items", SHAPE)
    cache.schedule("1", 60)
    tag = bucket(member("items", "1"))
    redis.zadd(RowKeys(tag).schedule, dict.fromkeys(NAMES, score))
    redis.zadd(RowKeys(tag).schedule, {member("items", "1"): score})
    redis.hset(RowKeys(tag).counts, mapping={"items": "many", b"\xff": "x"})
    reader = RowReader()

    assert [(row.name, row.key) for row in reader.page(limit=100) if row.name == "items"] == [("items", "1")]
    assert 0 <= reader.lateness() < 10**10
    assert "items" in [info.name for info in reader.names()]
    assert reader.of("items").members == [member("items", "1")]
    assert reader.find("items", 1) is not None
