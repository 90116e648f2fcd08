"""limit_concurrency: around functions, coroutines and blocks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from components.exceptions import PermitLost, SemaphoreFull
from components.services.semaphores import Semaphore, SemaphoreControls, limit_concurrency
from tests.support.waiting import eventually


@pytest.fixture
def controls(redis: Redis) -> SemaphoreControls:
    return SemaphoreControls("api")


def test_a_decorated_function_is_what_it_was(controls: SemaphoreControls) -> None:
    @limit_concurrency("api", limit=2)
    def add(a: int, *, b: int) -> int:
        """Add."""
        return a + b + controls.info().used

    assert add(1, b=2) == 4
    assert (add.__name__, add.__doc__) == ("add", "Add.")
    assert controls.info().used == 0


def test_no_more_calls_than_the_limit_are_made_at_a_time(controls: SemaphoreControls) -> None:
    now = most = 0
    guard, both = threading.Lock(), threading.Event()

    @limit_concurrency("api", limit=2)
    def call() -> None:
        nonlocal now, most
        with guard:
            now += 1
            most = max(most, now)
            if most == 2:
                both.set()
        assert both.wait(20)
        with guard:
            now -= 1

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(call) for _ in range(24)]:
            future.result(20)

    assert most == 2
    assert controls.info().granted == 24


def test_a_call_is_not_made_if_no_place_is_free(controls: SemaphoreControls) -> None:
    calls = []
    with limit_concurrency("api", limit=1), pytest.raises(SemaphoreFull):
        limit_concurrency("api", limit=1, wait=0.01)(calls.append)(1)

    assert calls == []
    limit_concurrency("api", limit=1, wait=0)(calls.append)(2)
    assert calls == [2]


def test_a_call_that_raises_gives_its_place_back(controls: SemaphoreControls) -> None:
    @limit_concurrency("api", limit=1)
    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert controls.info().used == 0


def test_a_decorated_coroutine_function_is_limited_while_it_runs(controls: SemaphoreControls) -> None:
    @limit_concurrency("api", limit=2)
    async def call(number: int) -> tuple[int, bool]:
        await asyncio.sleep(0)
        return number, 1 <= controls.info().used <= 2

    async def main() -> list[tuple[int, bool]]:
        return await asyncio.gather(*(call(number) for number in range(9)))

    assert asyncio.run(main()) == [(number, True) for number in range(9)]
    assert controls.info().used == 0


def test_a_call_may_weigh_more_than_one(controls: SemaphoreControls) -> None:
    with limit_concurrency("api", limit=5, weight=4):
        assert controls.info().used == 4
        with limit_concurrency("api", limit=5) as permit:
            assert controls.info().used == 5
            permit.ensure_held()


def test_the_place_of_a_long_call_is_renewed(controls: SemaphoreControls) -> None:
    with limit_concurrency("api", limit=1, lease=1) as permit:
        first = permit.valid_until
        assert eventually(lambda: permit.valid_until > first + 0.4)
        assert Semaphore("api", limit=1).try_acquire() is None


def test_a_place_that_was_lost_is_said(controls: SemaphoreControls) -> None:
    @limit_concurrency("api", limit=1)
    def call() -> None:
        [holder] = controls.holders()
        controls.evict(holder.id)

    with pytest.raises(PermitLost):
        call()


def test_one_object_serves_many_blocks_at_once(controls: SemaphoreControls) -> None:
    limiter, inside = limit_concurrency("api", limit=9), threading.Barrier(4)

    def call() -> str:
        with limiter as outer, limiter as inner:
            inside.wait(20)
            assert outer.id != inner.id
            inside.wait(20)
        assert outer.is_released
        assert inner.is_released
        return outer.id

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(call) for _ in range(4)]

        assert len({future.result(20) for future in futures}) == 4
    assert controls.info().used == 0


def test_one_object_serves_many_coroutines_at_once(controls: SemaphoreControls) -> None:
    limiter = limit_concurrency("api", limit=9)

    async def call(inside: asyncio.Barrier) -> str:
        async with limiter as permit:
            await inside.wait()
        assert permit.is_released
        return permit.id

    async def main() -> list[str]:
        inside = asyncio.Barrier(4)
        return await asyncio.gather(*(call(inside) for _ in range(4)))

    assert len(set(asyncio.run(main()))) == 4
    assert controls.info().used == 0


def test_generators_are_refused(redis: Redis) -> None:
    def numbers() -> Iterator[int]:
        yield 1

    async def anumbers() -> AsyncIterator[int]:
        yield 1

    for function in (numbers, anumbers):
        with pytest.raises(TypeError, match="is a generator"):
            limit_concurrency("api", limit=1)(function)
