"""
Lock and AsyncLock in the place of redis-py's: what a caller of theirs may pass, and what comes back.

redis-py's own tests of both are run in tests/redis_suite; what differs on purpose is in the table of docs/locks.md.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, LockError, LockNotOwnedError, ResponseError
from redis.retry import Retry

from components.embedded import EmbeddedServer
from components.exceptions import LockLost, LockNotAcquired
from components.services.locks import AsyncLock, Lock
from components.services.locks.keys import LockKeys
from components.testing import empty
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

OPTIONS: list[dict[str, Any]] = [{}, {"sleep": 0.01}, {"timeout": 5, "auto_renewal": True}]
SENT = 3  # times at most that a script is sent before its caller hears of it


@pytest.fixture
def redis(redis_server: EmbeddedServer) -> Iterator[Redis]:
    """A plain server only: the proxy forwards to its socket."""
    with empty(redis_server) as client:
        yield client


@pytest.fixture
def proxy(redis_server: EmbeddedServer, redis: Redis) -> Iterator[LossyProxy]:
    with Lock(redis, "other", timeout=5) as held:
        held.extend(1)  # now the server knows the scripts
    with LossyProxy(redis_server) as proxy:
        yield proxy


def was_held(redis: Redis) -> bool:
    """Return whether somebody acquired it once, and released it."""
    return bool(redis.keys("*:let-go:*")) and not redis.zscore(LockKeys.of("a", redis).held, b"\xffa")


def in_a_loop(url: str, main: Any, **options: Any) -> None:
    async def run() -> None:
        async with AsyncRedis.from_url(url, **options) as client:
            await main(client)

    asyncio.run(run())


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("decodes", [False, True], ids=["bytes", "decoded"])
@pytest.mark.parametrize("name", ["a", b"a"], ids=["str", "bytes"])
def test_any_client_and_any_type_of_name_will_do(
    redis: Redis, redis_server: EmbeddedServer, protocol: int, decodes: bool, name: Any
) -> None:
    options: dict[str, Any] = {"protocol": protocol, "decode_responses": decodes}

    async def main(client: AsyncRedis) -> None:
        async with AsyncLock(client, name, timeout=100) as held:
            await held.ensure_held()
            assert await held.extend(100)
        assert await held.acquire(token="ü")
        await held.ensure_held()
        await held.release()

    in_a_loop(redis_server.url, main, **options)
    with Redis.from_url(redis_server.url, **options) as client, ThreadPoolExecutor(1) as pool:
        with Lock(client, name, timeout=100) as held:
            assert redis.get("a") == held.local.token
            assert held.extend(100)
            assert held.reacquire()
            held.ensure_held()
            waiting = pool.submit(Lock(client, "a", fair=True).acquire)
            assert eventually(lambda: redis.zcard(LockKeys.of("a", client).queue))
        assert waiting.result(20)


@pytest.mark.parametrize(
    ("token", "stored"),
    [("ü", "ü".encode()), (b"\xff\x00", b"\xff\x00"), (memoryview(b"t"), b"t"), (7, b"7"), (1.5, b"1.5")],
)
def test_a_token_is_stored_as_redis_py_encodes_it(redis: Redis, token: Any, stored: bytes) -> None:
    held = Lock(redis, "a", timeout=9)

    assert held.acquire(token=token)
    assert redis.get("a") == held.local.token == stored
    held.ensure_held()
    held.release()


def test_acquisitions_with_one_token_are_told_apart(redis: Redis) -> None:
    first, second = Lock(redis, "a", timeout=9), Lock(redis, "a", timeout=9)
    assert first.acquire(token="mine")
    assert not second.acquire(blocking=False, token="mine")
    assert not second.acquire(blocking_timeout=0.01, token="mine")
    assert first.owned()

    redis.delete("a")
    assert second.acquire(token="mine")
    for act in (first.ensure_held, lambda: first.extend(5), first.release):
        with pytest.raises(LockLost):
            act()
    second.ensure_held()
    second.release()


def test_a_lock_is_handed_on_by_its_token(redis: Redis) -> None:
    """As a task releases what the one that sent it acquired."""
    first, second = Lock(redis, "a", timeout=9), Lock(redis, "a", timeout=9)
    first.acquire(token="mine")
    second.local.token = b"mine"

    assert second.owned()
    assert second.extend(5)
    assert 9_000 < redis.pttl("a") <= 14_000
    assert second.reacquire()
    second.release()
    assert not redis.exists("a")


def test_a_key_of_another_type_is_an_error(redis: Redis) -> None:
    redis.rpush("a", "b")

    with pytest.raises(ResponseError):
        Lock(redis, "a", timeout=9).acquire(blocking=False)
    assert redis.lrange("a", 0, -1) == [b"b"]


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize(
    ("how", "error"), [("held", None), ("lost", LockLost), ("another's", LockLost), ("released", LockError)]
)
def test_the_end_of_a_block_tells_of_a_loss_unless_it_shall_not(
    redis: Redis, how: str, error: type[Exception] | None, raises: bool
) -> None:
    def lose() -> None:
        if how == "lost":
            redis.delete("a")
        elif how == "another's":
            redis.set("a", "another's")

    async def main(client: AsyncRedis) -> None:
        async with AsyncLock(client, "a", timeout=9, raise_on_release_error=raises) as held:
            lose()
            if how == "released":
                await held.release()

    def block() -> None:
        with Lock(redis, "a", timeout=9, raise_on_release_error=raises) as held:
            lose()
            if how == "released":
                held.release()

    url = f"unix://{redis.get_connection_kwargs()['path']}"
    for enter in (block, lambda: in_a_loop(url, main)):
        redis.delete("a")
        if error and raises:
            with pytest.raises(error):
                enter()
        else:
            enter()
        assert redis.get("a") == (b"another's" if how == "another's" else None)


def test_a_lock_that_polls_does_not_queue(redis: Redis) -> None:
    holder = Lock(redis, "a", timeout=9)
    holder.acquire()
    polling = Lock(redis, "a", timeout=9, sleep=0.001)

    assert not polling.acquire(blocking_timeout=0.01)
    with pytest.raises(LockNotAcquired), Lock(redis, "a", timeout=9, sleep=0.001, blocking_timeout=0.01):
        pytest.fail("both hold it")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(polling.acquire)
        assert not redis.exists(LockKeys.of("a", redis).queue)
        holder.release()
        assert waiting.result(20)


# What release() leaves in the lock object: its token, while it is unknown whether Redis has released it


def test_an_acquisition_and_a_release_without_an_answer_can_be_tried_again(
    proxy: LossyProxy, redis: Redis
) -> None:
    with Redis.from_url(proxy.url, retry=Retry(NoBackoff(), 0)) as client:
        held = Lock(client, "a", timeout=10)
        proxy.lose_replies(to="EVALSHA", times=2 * SENT)
        with pytest.raises(ConnectionError):
            held.acquire()
        assert (asked := held.local.doubtful)
        proxy.lose_replies(to="", times=0)
        held.acquire()
        token = held.local.token
        assert token == asked
        proxy.lose_replies(to="EVALSHA", times=SENT)

        with pytest.raises(ConnectionError):
            held.release()

        proxy.lose_replies(to="", times=0)
        assert held.local.token == token
        assert not redis.exists("a")  # the server has heard it
        held.release()
        assert held.local.token is None


@pytest.mark.parametrize("is_lost", [False, True], ids=["released", "lost"])
def test_a_release_leaves_the_token_of_the_next_holder(redis: Redis, is_lost: bool) -> None:
    """Threads or coroutines that share one token, as thread_local=False has it."""
    outcome: Any = pytest.raises(LockNotOwnedError) if is_lost else nullcontext()
    held: Any = Lock(redis, "a", timeout=10, thread_local=False)
    release = held.do_release

    def overtaken(token: bytes) -> None:
        if is_lost:
            redis.delete("a")
        try:
            release(token)
        finally:
            held.acquire(token="another's")

    held.do_release = overtaken
    held.acquire()
    with outcome:
        held.release()
    assert held.local.token == b"another's"
    assert held.owned()


# What was asked for, and given up before the first answer


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_an_interrupt_before_the_first_answer_leaves_nothing_held(
    redis: Redis, proxy: LossyProxy, alarm: Callable[[float], object], options: dict[str, Any]
) -> None:
    with Redis.from_url(proxy.url, retry=Retry(NoBackoff(), 0)) as client:
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
