"""
Locks whose replies are lost, as a caller sees them: by a client of redis-py's own, which sends again, ten times, what
was not answered.

tests/kit/test_lost_replies.py holds the scripts to it one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from components.embedded import EmbeddedServer
from components.services.locks import AsyncLock, Lock
from components.services.locks.keys import LockKeys
from components.testing import empty
from tests.support.proxy import LossyProxy

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
