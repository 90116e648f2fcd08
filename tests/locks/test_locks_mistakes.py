"""What cannot be asked of a lock: each mistake has an error that says so, and Redis is as it was."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import LockError, LockNotOwnedError

from components.exceptions import InvalidName, InvalidValue, LockLost
from components.kit.client import get_async_client
from components.services.locks import AsyncLock, Lock, LockReader, locks
from components.services.locks.named import key_of
from tests.support.snapshots import snapshot


@pytest.fixture
def held(redis: Redis) -> Lock:
    held = Lock(redis, "a", timeout=100)
    assert held.acquire(blocking=False)
    return held


@contextmanager
def unchanged(redis: Redis) -> Iterator[None]:
    before = snapshot(redis)
    yield
    assert snapshot(redis) == before


MISTAKES: list[tuple[str, Callable[[Redis, Lock], Any], type[Exception], str]] = [
    ("no name", lambda redis, held: Lock(redis, ""), InvalidName, "1 to 500"),
    ("a long name", lambda redis, held: Lock(redis, "x" * 501), InvalidName, "501 characters"),
    ("no text", lambda redis, held: Lock(redis, b"\xff"), InvalidName, "UTF-8"),
    ("a list as name", lambda redis, held: Lock(redis, ["a"]), InvalidName, "must be text"),  # type: ignore[arg-type]
    ("a truth as name", lambda redis, held: Lock(redis, True), InvalidName, "must be text"),
    ("no names", lambda redis, held: locks([]), InvalidName, "at least one"),
    ("a name for names", lambda redis, held: locks("ab"), InvalidName, "give a list"),
    ("zero time", lambda redis, held: Lock(redis, "b", timeout=0), InvalidValue, "timeout"),
    ("negative time", lambda redis, held: Lock(redis, "b", timeout=-1), InvalidValue, "timeout"),
    ("NaN", lambda redis, held: Lock(redis, "b", timeout=math.nan), InvalidValue, "timeout"),
    ("infinity", lambda redis, held: Lock(redis, "b", timeout=math.inf), InvalidValue, "timeout"),
    ("text for time", lambda redis, held: Lock(redis, "b", timeout="1"), InvalidValue, "timeout"),  # type: ignore[arg-type]
    ("negative sleep", lambda redis, held: Lock(redis, "b", sleep=-1), InvalidValue, "sleep"),
    ("NaN patience", lambda redis, held: held.acquire(blocking_timeout=math.nan), InvalidValue, "blocking"),
    ("NaN sleep", lambda redis, held: held.acquire(sleep=math.nan), InvalidValue, "sleep"),
    ("endless extension", lambda redis, held: held.extend(-math.inf), InvalidValue, "additional_time"),
    ("true extension", lambda redis, held: held.extend(True), InvalidValue, "additional_time"),
    ("NaN extension", lambda redis, held: held.extend(math.nan), InvalidValue, "additional_time"),
    ("for ever", lambda redis, held: Lock(redis, "b", auto_renewal=True), ValueError, "needs a timeout"),
    ("fair sleep", lambda redis, held: Lock(redis, "b", fair=True, sleep=1), ValueError, "give no sleep"),
    ("another's", lambda redis, held: Lock(redis, "a").release(), LockError, "not owned"),
    ("another's time", lambda redis, held: Lock(redis, "a", 5).extend(5), LockError, "unlocked"),
    ("another's time anew", lambda redis, held: Lock(redis, "a", 5).reacquire(), LockError, "unlocked"),
    ("another's fence", lambda redis, held: Lock(redis, "a").fence, LockError, "not held here"),
    ("another's end", lambda redis, held: Lock(redis, "a").remaining, LockError, "not held here"),
    ("another's loss", lambda redis, held: Lock(redis, "a").lost, LockError, "not held here"),
    ("nothing to hold", lambda redis, held: Lock(redis, "a").ensure_held(), LockError, "not held here"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "error", "message"),
    [pytest.param(mistake, error, message, id=name) for name, mistake, error, message in MISTAKES],
)
def test_a_mistake_is_told_and_changes_nothing(
    redis: Redis,
    held: Lock,
    mistake: Callable[[Redis, Lock], Any],
    error: type[Exception],
    message: str,
) -> None:
    with unchanged(redis), pytest.raises(error, match=message):
        mistake(redis, held)

    assert held.owned()


def test_a_second_release_is_told_and_changes_nothing(redis: Redis, held: Lock) -> None:
    held.release()
    other = Lock(redis, "a", timeout=100)
    other.acquire()

    with unchanged(redis), pytest.raises(LockError, match="already unlocked") as caught:
        held.release()

    assert not isinstance(caught.value, LockNotOwnedError)
    assert other.owned()


@pytest.mark.parametrize("do", [Lock.release, lambda held: held.extend(5), Lock.reacquire, Lock.ensure_held])
def test_using_a_lock_that_has_a_new_holder_leaves_the_new_holder_alone(
    redis: Redis, held: Lock, do: Callable[[Lock], Any]
) -> None:
    redis.delete("a")
    other = Lock(redis, "a", timeout=100)
    other.acquire()

    with unchanged(redis), pytest.raises(LockLost):
        do(held)

    assert other.owned()


def test_a_lock_without_a_timeout_cannot_be_extended(redis: Redis) -> None:
    held = Lock(redis, "a")
    held.acquire()

    for extend in (lambda: held.extend(5), held.reacquire):
        with unchanged(redis), pytest.raises(LockError, match="no timeout"):
            extend()

    assert redis.ttl("a") == -1


def test_a_holder_that_is_not_there_is_not_forced(redis: Redis, held: Lock) -> None:
    with unchanged(redis):
        assert not LockReader().force_release("a", "nobody", held.fence)
        assert not LockReader().force_release(key_of("never used"), "nobody", 1)

    assert held.owned()


def test_a_client_of_the_other_kind_is_refused(redis: Redis) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="Use AsyncLock for this client"):
            Lock(get_async_client(), "a")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="Use Lock for this client"):
            AsyncLock(redis, "a")

    asyncio.run(main())


def test_coroutines_are_told_the_same(redis: Redis) -> None:
    async def main() -> None:
        client = get_async_client()
        for options in ({"timeout": 0}, {"timeout": math.nan}, {"sleep": -1}, {"blocking_timeout": math.nan}):
            with pytest.raises(InvalidValue):
                AsyncLock(client, "a", **options)  # type: ignore[arg-type]
        with pytest.raises(InvalidName):
            AsyncLock(client, "")
        unheld = AsyncLock(client, "a", timeout=5)
        with pytest.raises(LockError, match="not owned"):
            await unheld.release()
        with pytest.raises(LockError, match="unlocked"):
            await unheld.extend(5)
        with pytest.raises(LockError, match="not held here"):
            await unheld.ensure_held()
        with pytest.raises(InvalidValue, match="blocking_timeout"):
            await unheld.acquire(blocking_timeout=math.nan)
        async with unheld as held:
            with pytest.raises(InvalidValue, match="additional_time"):
                await held.extend(math.nan)
            assert await held.owned()

    asyncio.run(main())
    assert not redis.exists("a")
