"""
Locks whose replies are lost, as a caller sees them: by a client of redis-py's own, which sends again, ten times, what
was not answered.

tests/kit/test_lost_replies.py holds the scripts to it one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from components.embedded import EmbeddedServer
from components.exceptions import LockLost
from components.services.locks import AsyncLock, Lock
from components.services.locks.keys import LockKeys
from components.testing import empty
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

RETRIES = 10
OPTIONS: list[dict[str, Any]] = [{}, {"sleep": 0.01}, {"timeout": 5, "auto_renewal": True}]


@pytest.fixture
def redis(redis_server: EmbeddedServer) -> Iterator[Redis]:
    """A plain server only: the proxy forwards to its socket."""
    with empty(redis_server) as client:
        with Lock(client, "other", timeout=5) as held:
            held.extend(1)  # now the server knows the scripts
        yield client


@pytest.fixture
def proxy(redis_server: EmbeddedServer, redis: Redis) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


def was_held(redis: Redis) -> bool:
    """Return whether somebody acquired it once, and released it."""
    return bool(redis.keys("*:let-go:*")) and not redis.zscore(LockKeys.of("a", redis).held, b"\xffa")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_an_interrupt_before_the_first_answer_leaves_nothing_held(
    redis: Redis, proxy: LossyProxy, alarm: Callable[[float], object], options: dict[str, Any]
) -> None:
    with Redis.from_url(proxy.url, retry=Retry(ConstantBackoff(0.001), RETRIES)) as client:
        asked = Lock(client, "a", **options)
        client.ping()
        proxy.lose_replies(to="EVALSHA", silently=True)
        alarm(0.1)

        with pytest.raises(KeyboardInterrupt):
            asked.acquire()

        assert proxy.lost == 1
        assert was_held(redis)
        assert not redis.exists("a")
        assert asked.local.token is None
        assert asked.acquire(blocking=False)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_cancellation_before_the_first_answer_leaves_nothing_held(
    redis: Redis, proxy: LossyProxy, options: dict[str, Any]
) -> None:
    async def main() -> None:
        async with AsyncRedis.from_url(proxy.url) as client:
            asked = AsyncLock(client, "a", **options)
            await client.ping()
            proxy.lose_replies(to="EVALSHA", silently=True)
            acquiring = asyncio.create_task(asked.acquire())
            while not proxy.lost:
                await asyncio.sleep(0.005)
            acquiring.cancel()
            with pytest.raises(asyncio.CancelledError):
                await acquiring
            assert asked.local.token is None

    asyncio.run(main())
    assert was_held(redis)
    assert not redis.exists("a")


def acquire(held: Lock) -> bool:
    return held.acquire(blocking=False)


def extend(held: Lock) -> str:
    with pytest.raises(LockLost):
        held.extend(50)
    return "lost"


@pytest.mark.parametrize(
    ("act", "is_over", "expected"),
    [(acquire, True, False), (Lock.release, False, None), (extend, True, "lost")],
)
def test_a_repeated_call_leaves_the_next_holder_alone(
    redis: Redis, proxy: LossyProxy, act: Callable[[Lock], object], is_over: bool, expected: object
) -> None:
    """The first reply is lost silently, and another has acquired the lock before the call is sent again."""
    held = Lock(redis, "a", timeout=100, thread_local=False)
    other = Lock(redis, "a", timeout=100)
    if act is not acquire:
        held.acquire()
    retry = Retry(ConstantBackoff(0.001), RETRIES)
    with ThreadPoolExecutor(1) as pool, Redis.from_url(proxy.url, socket_timeout=0.3, retry=retry) as client:
        client.ping()
        held.redis = client
        proxy.lose_replies(to="EVALSHA", silently=True)
        answer = pool.submit(act, held)
        assert eventually(lambda: proxy.lost)
        assert redis.delete("a") == is_over
        assert other.acquire(blocking=False)
        assert answer.result(20) == expected

    assert other.owned()
    assert 50_000 < redis.pttl("a") <= 100_000
