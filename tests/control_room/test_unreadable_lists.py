"""Pages of locks, semaphores, counters and rows, where somebody else has written names or scores that are none."""

from __future__ import annotations

import math

import pytest

from components.kit.keyspace import bucket
from components.services.counters import Counter
from components.services.counters.keys import CounterKeys
from components.services.locks import lock
from components.services.locks.keys import LockKeys
from components.services.rows import RowCache, member
from components.services.rows.keys import RowKeys
from components.services.semaphores import Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.rows import SHAPE

NAMES = [b"", b"\xff\xfe", b"x" * 2_000, b"a\0b", b"{", b"a/b/c"]
PAGES = [
    *("lock/", "lock/?q=good", "semaphore/", "semaphore/semaphore/?semaphore=good"),
    *("counter/", "cachedrow/", "cachedrow/model/?model=items", "cachedrow/row/?row=items:good"),
]


@pytest.mark.parametrize("score", [math.inf, -math.inf, 1e300, 1e17])
def test_every_page_is_there(admin_client, redis, score):
    lock("good").acquire()
    semaphore = Semaphore("good", limit=3)
    semaphore.acquire()
    Counter("good:one").update(3)
    RowCache("items", SHAPE).schedule("good", 60)
    row = member("items", "good")
    for key in (
        LockKeys.named("good").held,
        SemaphoreKeys("good").names,
        SemaphoreKeys("good").holders,
        SemaphoreKeys("good").since,
        SemaphoreKeys("good").heavy,
        SemaphoreKeys("good").queue,
        SemaphoreKeys("good").beats,
        CounterKeys(bucket("good:one")).names,
        RowKeys(bucket(row)).schedule,
    ):
        redis.zadd(key, dict.fromkeys(NAMES, score))
    redis.zadd(RowKeys(bucket(row)).schedule, {row: score})

    for page in PAGES:
        response = admin_client.get(f"/admin/components/{page}", follow=True)
        assert response.status_code == 200, page
        assert "good" in response.text, page
