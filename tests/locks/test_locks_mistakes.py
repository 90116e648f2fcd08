"""What cannot be asked of a lock: each mistake has its error, and Redis is as it was."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import LockError, LockNotOwnedError

from components.exceptions import InvalidName, InvalidValue
from components.kit.client import get_async_client
from components.services.locks import AsyncLock, Lock, LockReader, lock, locks
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


OPTIONS = [
    *(("timeout", wrong) for wrong in (0, 0.0004, -1, math.inf, 10**12, math.nan, "5", True)),
    *(("sleep", wrong) for wrong in (-1, math.inf, 10**12, math.nan, "5", True)),
    *(("blocking_timeout", wrong) for wrong in (math.nan, "5", True)),
]
MISTAKES: dict[str, tuple[type[Exception], Callable[[Redis, Lock], Any]]] = {
    **{f"name {name!r:.9}": (InvalidName, lambda redis, held, name=name: Lock(redis, name))
       for name in ("", "x" * 501, b"\xff", "\ud800", ["a"], True, None)},
    **{f"named {name!r:.9}": (InvalidName, lambda redis, held, name=name: lock(name))
       for name in ("", "x" * 501, 7, None, "\ud800")},
    **{f"{option} {wrong!r}": (InvalidValue, lambda redis, held, given=(option, wrong): lock("b", **dict([given])))
       for option, wrong in OPTIONS},
    **{f"extend {wrong!r}": (InvalidValue, lambda redis, held, wrong=wrong: held.extend(wrong))
       for wrong in (math.nan, math.inf, -math.inf, True, "1", None, 10**12)},
    "no names": (InvalidName, lambda redis, held: locks([])),
    "a name for names": (InvalidName, lambda redis, held: locks("ab")),
    "NaN patience": (InvalidValue, lambda redis, held: held.acquire(blocking_timeout=math.nan)),
    "NaN sleep": (InvalidValue, lambda redis, held: held.acquire(sleep=math.nan)),
    "negative sleep": (InvalidValue, lambda redis, held: held.acquire(sleep=-1)),
    "renewal of what has no end": (ValueError, lambda redis, held: Lock(redis, "b", auto_renewal=True)),
    "fair polling": (ValueError, lambda redis, held: Lock(redis, "b", fair=True, sleep=1)),
    "another's": (LockError, lambda redis, held: Lock(redis, "a").release()),
    "another's time": (LockError, lambda redis, held: Lock(redis, "a", 5).extend(5)),
    "another's time anew": (LockError, lambda redis, held: Lock(redis, "a", 5).reacquire()),
    "another's fence": (LockError, lambda redis, held: Lock(redis, "a").fence),
    "another's end": (LockError, lambda redis, held: Lock(redis, "a").remaining),
    "another's loss": (LockError, lambda redis, held: Lock(redis, "a").lost),
    "nothing to hold": (LockError, lambda redis, held: Lock(redis, "a").ensure_held()),
}  # fmt: skip


@pytest.mark.parametrize(("error", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_and_changes_nothing(
    redis: Redis, held: Lock, error: type[Exception], mistake: Callable[[Redis, Lock], Any]
) -> None:
    with unchanged(redis), pytest.raises(error) as caught:
        mistake(redis, held)

    assert not isinstance(caught.value, LockNotOwnedError)
    assert held.owned()


def test_a_lock_without_a_timeout_cannot_be_extended(redis: Redis) -> None:
    held = Lock(redis, "a")
    held.acquire()

    for extend in (lambda: held.extend(5), held.reacquire):
        with unchanged(redis), pytest.raises(LockError):
            extend()


def test_a_holder_that_is_not_there_is_not_forced(redis: Redis, held: Lock) -> None:
    with unchanged(redis):
        assert not LockReader().force_release("a", "nobody", held.fence)
        assert not LockReader().force_release(key_of("never used"), "nobody", 1)


def test_coroutines_are_told_the_same(redis: Redis) -> None:
    async def main() -> None:
        client = get_async_client()
        for options in ({"timeout": 0}, {"timeout": math.nan}, {"sleep": -1}, {"blocking_timeout": math.nan}):
            with pytest.raises(InvalidValue):
                AsyncLock(client, "a", **options)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            Lock(client, "a")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            AsyncLock(redis, "a")
        unheld = AsyncLock(client, "a", timeout=5)
        for act in (unheld.release, lambda: unheld.extend(5), unheld.reacquire, unheld.ensure_held):
            with pytest.raises(LockError):
                await act()
        with pytest.raises(InvalidValue):
            await unheld.acquire(blocking_timeout=math.nan)
        async with unheld as held:
            with pytest.raises(InvalidValue):
                await held.extend(math.nan)
            assert await held.owned()

    asyncio.run(main())
    assert not redis.exists("a")
