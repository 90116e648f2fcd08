"""
What release() leaves in the lock object: its token, while it is unknown whether Redis has released it.

So it may be tried again. redis-py's asynchronous lock does that, and from the release after 8.1 on its other one too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, LockError, LockNotOwnedError
from redis.retry import Retry

from components.embedded import EmbeddedServer
from components.services.locks import AsyncLock, Lock
from components.testing import empty
from tests.support.proxy import LossyProxy

SENT = 3  # times at most that a script is sent before its caller hears of it


@pytest.fixture
def redis(redis_server: EmbeddedServer) -> Iterator[Redis]:
    """A plain server only: the proxy forwards to its socket."""
    with empty(redis_server) as client:
        yield client


@pytest.fixture
def proxy(redis_server: EmbeddedServer, redis: Redis) -> Iterator[LossyProxy]:
    with Lock(redis, "other"):
        pass  # now the server knows the scripts
    with LossyProxy(redis_server) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: LossyProxy) -> Iterator[Redis]:
    """redis-py's own, which repeats nothing by itself."""
    with Redis.from_url(proxy.url, retry=Retry(NoBackoff(), 0)) as client:
        yield client


def in_a_loop(proxy: LossyProxy, main: Any) -> None:
    async def run() -> None:
        async with AsyncRedis.from_url(proxy.url, retry=AsyncRetry(NoBackoff(), 0)) as client:
            await main(client)

    asyncio.run(run())


def test_a_release_without_an_answer_can_be_tried_again(
    client: Redis, proxy: LossyProxy, redis: Redis
) -> None:
    held = Lock(client, "a", timeout=10)
    held.acquire()
    token = held.local.token
    proxy.lose_replies(to="EVALSHA", times=SENT)

    with pytest.raises(ConnectionError):
        held.release()

    proxy.lose_replies(to="", times=0)
    assert held.local.token == token
    assert not redis.exists("a")  # the server has heard it
    held.release()
    assert held.local.token is None
    with pytest.raises(LockError, match="not owned"):
        held.release()


def test_a_coroutines_release_without_an_answer_can_be_tried_again(proxy: LossyProxy, redis: Redis) -> None:
    async def main(client: AsyncRedis) -> None:
        held = AsyncLock(client, "a", timeout=10)
        await held.acquire()
        token = held.local.token
        proxy.lose_replies(to="EVALSHA", times=SENT)

        with pytest.raises(ConnectionError):
            await held.release()

        proxy.lose_replies(to="", times=0)
        assert held.local.token == token
        assert not redis.exists("a")
        await held.release()
        assert held.local.token is None

    in_a_loop(proxy, main)


def test_the_token_goes_with_the_news_that_it_is_lost(client: Redis, proxy: LossyProxy, redis: Redis) -> None:
    held = Lock(client, "a", timeout=10)
    held.acquire()
    redis.set("a", "another's")

    with pytest.raises(LockNotOwnedError):
        held.release()

    assert held.local.token is None
    assert redis.get("a") == b"another's"


def test_a_coroutines_token_goes_with_the_news_that_it_is_lost(proxy: LossyProxy, redis: Redis) -> None:
    async def main(client: AsyncRedis) -> None:
        held = AsyncLock(client, "a", timeout=10)
        await held.acquire()
        redis.set("a", "another's")

        with pytest.raises(LockNotOwnedError):
            await held.release()

        assert held.local.token is None
        assert redis.get("a") == b"another's"

    in_a_loop(proxy, main)


@pytest.mark.parametrize("is_lost", [False, True], ids=["released", "lost"])
def test_a_release_leaves_the_token_of_the_next_holder(redis: Redis, is_lost: bool) -> None:
    """Threads that share one token, as thread_local=False has it."""

    class Overtaken(Lock):
        def do_release(self, expected_token: Any) -> None:
            if is_lost:
                redis.delete("a")
            try:
                super().do_release(expected_token)
            finally:
                self.acquire(token="another's")

    held = Overtaken(redis, "a", timeout=10, thread_local=False)
    held.acquire()

    if is_lost:
        with pytest.raises(LockNotOwnedError):
            held.release()
    else:
        held.release()

    assert held.local.token == b"another's"
    assert held.owned()
    assert held.fence


@pytest.mark.parametrize("is_lost", [False, True], ids=["released", "lost"])
def test_a_coroutines_release_leaves_the_token_of_the_next_holder(
    redis: Redis, proxy: LossyProxy, is_lost: bool
) -> None:
    class Overtaken(AsyncLock):
        async def do_release(self, expected_token: Any) -> None:
            if is_lost:
                redis.delete("a")
            try:
                await super().do_release(expected_token)
            finally:
                await self.acquire(token="another's")

    async def main(client: AsyncRedis) -> None:
        held = Overtaken(client, "a", timeout=10, thread_local=False)
        await held.acquire()

        if is_lost:
            with pytest.raises(LockNotOwnedError):
                await held.release()
        else:
            await held.release()

        assert held.local.token == b"another's"
        assert await held.owned()
        assert held.fence

    in_a_loop(proxy, main)
