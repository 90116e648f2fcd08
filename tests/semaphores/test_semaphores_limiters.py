"""limit_concurrency: around functions, coroutines and blocks."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from functools import partial

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from redis import Redis

from components.exceptions import PermitLost, SemaphoreFull
from components.kit import leases
from components.services.semaphores import Semaphore, SemaphoreControls, limit_concurrency
from tests.support.waiting import eventually


@pytest.fixture
def controls(redis: Redis) -> SemaphoreControls:
    return SemaphoreControls("api")


def test_a_decorated_function_is_what_it_was_and_is_limited_while_it_runs(
    controls: SemaphoreControls,
) -> None:
    @limit_concurrency("api", limit=5, weight=4)
    def add(a: int, *, b: int) -> int:
        """Add."""
        return a + b + controls.info().used

    @limit_concurrency("api", limit=1)
    def fail() -> None:
        raise KeyError

    @limit_concurrency("api", limit=1)
    def lose() -> None:
        controls.evict(controls.holders()[0].id)

    assert add(1, b=2) == 7
    assert (add.__name__, add.__doc__) == ("add", "Add.")
    with pytest.raises(KeyError):
        fail()
    with pytest.raises(PermitLost):
        lose()
    assert controls.info().used == 0


def test_a_call_is_not_made_if_no_place_is_free(controls: SemaphoreControls) -> None:
    calls = []
    with limit_concurrency("api", limit=1), pytest.raises(SemaphoreFull):
        limit_concurrency("api", limit=1, wait=0.01)(calls.append)(1)

    limit_concurrency("api", limit=1, wait=0)(calls.append)(2)
    assert calls == [2]


def test_the_place_of_a_long_call_is_renewed(
    controls: SemaphoreControls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_PART", 600)
    with limit_concurrency("api", limit=1) as permit:
        first = permit.valid_until
        assert eventually(lambda: permit.valid_until > first)


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

    async def acall(inside: asyncio.Barrier) -> str:
        async with limiter as permit:
            await inside.wait()
        assert permit.is_released
        return permit.id

    async def main() -> list[str]:
        inside = asyncio.Barrier(4)
        return await asyncio.gather(*(acall(inside) for _ in range(4)))

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(call) for _ in range(4)]
        assert len({future.result(20) for future in futures}) == 4
    assert len(set(asyncio.run(main()))) == 4
    assert controls.info().used == 0


def test_what_is_left_in_another_task_is_the_permit_of_one_that_has_ended_first(
    controls: SemaphoreControls,
) -> None:
    shared = limit_concurrency("api", limit=9)

    async def main() -> None:
        stack = AsyncExitStack()
        async with shared as outer:
            orphan = await asyncio.create_task(stack.enter_async_context(shared))
            async with shared as inner:
                await asyncio.create_task(stack.aclose())
                assert (outer.is_released, orphan.is_released, inner.is_released) == (False, True, False)
            assert (outer.is_released, inner.is_released) == (False, True)
        assert outer.is_released

    asyncio.run(main())
    assert controls.info().used == 0


def test_a_limit_may_be_left_in_another_thread(controls: SemaphoreControls) -> None:
    shared, stack = limit_concurrency("api", limit=9), ExitStack()
    with shared as mine:
        for act in (lambda: stack.enter_context(shared), stack.close):
            thread = threading.Thread(target=act)
            thread.start()
            thread.join()
        assert controls.info().used == 1
        mine.ensure_held()

    assert controls.info().used == 0


def test_a_limit_that_was_not_entered_cannot_be_left(controls: SemaphoreControls) -> None:
    shared = limit_concurrency("api", limit=9)

    with pytest.raises(RuntimeError):
        shared.__exit__(None, None, None)
    with shared, pytest.raises(RuntimeError):
        asyncio.run(shared.__aexit__(None, None, None))


def test_generators_are_refused(redis: Redis) -> None:
    def numbers() -> Iterator[int]:
        yield 1

    async def anumbers() -> AsyncIterator[int]:
        yield 1

    for function in (numbers, anumbers, partial(numbers)):
        with pytest.raises(TypeError):
            limit_concurrency("api", limit=1)(function)
    for function in (lambda: asyncio.sleep(0), lambda: numbers(), lambda: anumbers()):
        with pytest.raises(TypeError, match="runs after the call"):
            limit_concurrency("api", limit=1)(function)()


class Called:
    def __init__(self, function: Callable[[], Awaitable[None]]) -> None:
        self._function = function

    async def __call__(self) -> None:
        await self._function()


@pytest.mark.parametrize("kind", ["__call__", "sync_to_async"])
def test_what_is_awaited_is_limited_whatever_kind_of_function_it_is(redis: Redis, kind: str) -> None:
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    function = (
        Called(work) if kind == "__call__" else sync_to_async(async_to_sync(work), thread_sensitive=False)
    )
    limited = limit_concurrency("api", limit=1)(function)

    async def main() -> None:
        await asyncio.gather(*(limited() for _ in range(3)))

    asyncio.run(main())
    assert (most, Semaphore("api", limit=1).info().granted) == (1, 3)
