"""
Locks by a client of redis-py's own, which sends again, ten times, what was not answered: each thing happens once.

tests/kit/test_lost_replies.py holds the scripts to it one by one; here it is what a caller sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from components.embedded import EmbeddedServer
from components.services.locks import AsyncLock, Lock
from components.services.locks.keys import LockKeys
from components.testing import empty
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

RETRIES = 10
LOST = 12  # replies, more than are asked for before the script is sent again


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


@pytest.fixture
def client(proxy: LossyProxy) -> Iterator[Redis]:
    with Redis.from_url(proxy.url, retry=Retry(ConstantBackoff(0.001), RETRIES)) as client:
        yield client


def figures(redis: Redis) -> dict[bytes, bytes]:
    return redis.hgetall(LockKeys.of("a", redis).state)


def fence_of(redis: Redis) -> int:
    """Return that of the holder, who has not released it."""
    return -int(redis.zscore(LockKeys.of("a", redis).held, b"\xffa") or 0)


def was_held(redis: Redis) -> bool:
    """Return whether somebody acquired it once, and released it."""
    [released] = redis.keys("*:released:*") or redis.keys("*:let-go:*")
    return bool(released) and not fence_of(redis)


def test_each_thing_is_done_once(redis: Redis, client: Redis, proxy: LossyProxy) -> None:
    held = Lock(client, "a", timeout=100)

    proxy.lose_replies(to="EVALSHA", times=LOST)
    assert held.acquire(blocking=False)
    assert fence_of(redis) == held.fence

    proxy.lose_replies(to="EVALSHA", times=LOST)
    assert held.extend(100)
    assert 150_000 < redis.pttl("a") <= 200_000
    assert 150 < held.remaining <= 200

    proxy.lose_replies(to="EVALSHA", times=LOST)
    assert held.reacquire()
    assert 50_000 < redis.pttl("a") <= 100_000

    proxy.lose_replies(to="EVALSHA", times=LOST)
    held.release()
    assert not redis.exists("a")
    assert proxy.lost == 4 * LOST


def test_each_thing_is_done_once_for_coroutines(redis: Redis, proxy: LossyProxy) -> None:
    async def main() -> None:
        again = AsyncRetry(ConstantBackoff(0.001), RETRIES)
        async with AsyncRedis.from_url(proxy.url, retry=again) as client:
            held = AsyncLock(client, "a", timeout=100)
            proxy.lose_replies(to="EVALSHA", times=LOST)
            assert await held.acquire(blocking=False)
            assert fence_of(redis) == held.fence
            proxy.lose_replies(to="EVALSHA", times=LOST)
            assert await held.extend(100)
            assert 150_000 < redis.pttl("a") <= 200_000
            proxy.lose_replies(to="EVALSHA", times=LOST)
            await held.release()
            assert not redis.exists("a")

    asyncio.run(main())
    assert proxy.lost == 3 * LOST


def test_a_waiting_request_is_granted_once(redis: Redis, client: Redis, proxy: LossyProxy) -> None:
    """Replies to what makes it wait, to its sleep, and to what grants it, are lost."""
    holder, waiter = Lock(redis, "a", timeout=100), Lock(client, "a", timeout=100, thread_local=False)
    holder.acquire()
    of_a = LockKeys.of("a", redis)
    proxy.lose_replies(to="wake:", times=4)  # both the script and BLPOP name the waiter's list

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waiter.acquire)
        assert eventually(lambda: redis.zcard(of_a.queue))
        holder.release()
        assert waiting.result(20)

    assert figures(redis)[b"acquired"] == b"2"
    assert figures(redis)[b"waits"] == b"1"
    assert not redis.exists(of_a.queue)
    waiter.release()


@pytest.mark.parametrize("options", [{}, {"sleep": 0.01}, {"timeout": 5, "auto_renewal": True}], ids=str)
def test_an_interrupt_before_the_first_answer_leaves_nothing_held(
    redis: Redis,
    client: Redis,
    proxy: LossyProxy,
    alarm: Callable[[float], object],
    options: dict[str, Any],
) -> None:
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


@pytest.mark.parametrize("options", [{}, {"sleep": 0.01}, {"timeout": 5, "auto_renewal": True}], ids=str)
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


def meanwhile(
    redis: Redis, proxy: LossyProxy, act: Callable[[Redis], Any], happens: Callable[[], object]
) -> Any:
    """What *act* comes to, whose first reply was lost silently; *happens* runs before it is sent again."""
    with (
        ThreadPoolExecutor(1) as pool,
        Redis.from_url(proxy.url, socket_timeout=0.3, retry=Retry(ConstantBackoff(0.001), RETRIES)) as client,
    ):
        client.ping()
        proxy.lose_replies(to="EVALSHA", silently=True)
        answer = pool.submit(act, client)
        assert eventually(lambda: proxy.lost)
        happens()
        return answer.result(20)


def test_a_lock_acquired_by_another_since_is_not_ours(redis: Redis, proxy: LossyProxy) -> None:
    other = Lock(redis, "a", timeout=100)

    def runs_out() -> None:
        assert redis.delete("a")
        assert other.acquire(blocking=False)

    answer = meanwhile(
        redis, proxy, lambda client: Lock(client, "a", timeout=100).acquire(blocking=False), runs_out
    )

    assert answer is False
    assert other.owned()


def test_a_repeated_release_leaves_the_next_holder_alone(redis: Redis, proxy: LossyProxy) -> None:
    held, other = Lock(redis, "a", timeout=100, thread_local=False), Lock(redis, "a", timeout=100)
    held.acquire()

    def release(client: Redis) -> None:
        held.redis = client
        held.release()

    meanwhile(redis, proxy, release, lambda: other.acquire(blocking=False))

    assert other.owned()
    other.release()


def test_a_repeated_extension_adds_nothing_to_the_next_holders_time(redis: Redis, proxy: LossyProxy) -> None:
    held, other = Lock(redis, "a", timeout=100, thread_local=False), Lock(redis, "a", timeout=100)
    held.acquire()

    def extend(client: Redis) -> Any:
        held.redis = client
        try:
            return held.extend(50)
        except Exception as error:  # noqa: BLE001  (returned)
            return type(error).__name__

    def runs_out() -> None:
        assert redis.delete("a")
        assert other.acquire(blocking=False)

    assert meanwhile(redis, proxy, extend, runs_out) == "LockLost"
    assert 50_000 < redis.pttl("a") <= 100_000
