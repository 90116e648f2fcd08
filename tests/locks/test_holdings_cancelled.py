"""
Coroutines that are cancelled, once and again and at any moment: what they held is given back before they end, and who
waited waits no more. What is left in another task than it was entered in is given back as well.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, suppress
from typing import Any

import pytest
from redis import Redis

from components.kit import leases as renewals
from components.kit.at_once import to_its_end
from components.services.locks import AsyncLock, alock, alocks, lock
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.services.semaphores import Semaphore, SemaphoreControls, limit_concurrency
from components.services.semaphores.keys import SemaphoreKeys

ROUNDS = 120
NAMES = ("a", "b", "c")

Use = Callable[[], Awaitable[None]]


async def in_a_lock(**options: Any) -> None:
    async with alock("a", timeout=None if "auto_renewal" not in options else 60, **options):
        await asyncio.sleep(0.001)


async def in_a_lock_of_two_calls() -> None:
    held = alock("a", timeout=None)
    await held.acquire()
    try:
        await asyncio.sleep(0.001)
    finally:
        await held.release()


async def in_a_shared_lock() -> None:
    async with alock("a", timeout=None, thread_local=False):
        await asyncio.sleep(0.001)


async def in_a_lock_with_a_token() -> None:
    held = alock("a", timeout=None)
    await held.acquire(token="mine")
    try:
        await asyncio.sleep(0.001)
    finally:
        await held.release()


async def in_several_locks() -> None:
    async with alocks(NAMES, timeout=None):
        await asyncio.sleep(0.001)


async def with_a_permit() -> None:
    async with Semaphore("a", limit=1, lease=600).aacquire():
        await asyncio.sleep(0.001)


async def with_a_permit_of_two_calls() -> None:
    permit = await Semaphore("a", limit=1, lease=600).aacquire(auto_renewal=True)
    try:
        await asyncio.sleep(0.001)
    finally:
        await permit.arelease()


limiter = limit_concurrency("a", limit=1, lease=600)


async def in_a_limit() -> None:
    async with limiter:
        await asyncio.sleep(0.001)


@limit_concurrency("a", limit=1, lease=600)
async def decorated() -> None:
    await asyncio.sleep(0.001)


USES: dict[str, Use] = {
    "lock": in_a_lock,
    "lock, fair": lambda: in_a_lock(fair=True),
    "lock, polling": lambda: in_a_lock(sleep=0.001),
    "lock, renewed": lambda: in_a_lock(auto_renewal=True),
    "lock, acquire and release": in_a_lock_of_two_calls,
    "lock, one token": in_a_shared_lock,
    "lock, given token": in_a_lock_with_a_token,
    "locks": in_several_locks,
    "permit": with_a_permit,
    "permit, acquire and release": with_a_permit_of_two_calls,
    "limit": in_a_limit,
    "limit, decorated": decorated,
}


def left(redis: Redis) -> dict[str, Any]:
    """What is held, or waited for."""
    found: dict[str, Any] = {key_of(name): redis.get(key_of(name)) for name in NAMES}
    for name in NAMES:
        found[f"queue {name}"] = redis.zrange(LockKeys.named(name).queue, 0, -1)
    found["holders"] = redis.zrange(SemaphoreKeys("a").holders, 0, -1)
    found["queue"] = redis.zrange(SemaphoreKeys("a").queue, 0, -1)
    return {key: value for key, value in found.items() if value}


async def cancel(use: Use, chance: random.Random) -> None:
    """Begin it, cancel it some times after some turns of the loop, and await its end."""
    task = asyncio.ensure_future(use())
    for _ in range(chance.randrange(40)):
        await asyncio.sleep(0)
    for _ in range(chance.randint(1, 5)):
        task.cancel()
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.slow
@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_nothing_is_held_however_often_its_holder_is_cancelled(redis: Redis, use: Use) -> None:
    chance = random.Random(7)

    async def main() -> list[int]:
        await use()  # connections and scripts are there
        failures = []
        for number in range(ROUNDS):
            await cancel(use, chance)
            if left(redis):
                failures.append(number)
                redis.flushall()
        return failures

    assert asyncio.run(main()) == []


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_cancelled_call_does_not_wait_however_often_it_is_cancelled(redis: Redis, use: Use) -> None:
    chance = random.Random(8)
    holder, permit = lock("a", timeout=None), Semaphore("a", limit=1, lease=600).acquire()
    holder.acquire()
    while_held = left(redis)

    async def main() -> list[int]:
        failures = []
        for number in range(ROUNDS // 4):
            await cancel(use, chance)
            if left(redis) != while_held:
                failures.append(number)
        return failures

    assert asyncio.run(main()) == []
    holder.release()
    permit.release()
    assert left(redis) == {}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_nothing_is_held_when_the_loop_ends_while_its_holder_is_being_cancelled(
    redis: Redis, use: Use
) -> None:
    chance = random.Random(9)
    for _ in range(10):

        async def main() -> asyncio.Future[None]:
            await use()
            task = asyncio.ensure_future(use())
            for _ in range(chance.randrange(30)):
                await asyncio.sleep(0)
            task.cancel()
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            return task

        asyncio.run(main())
        assert left(redis) == {}


def test_an_uninterruptible_call_ends_before_the_cancellation_is_raised() -> None:
    began: list[int] = []

    async def main() -> None:
        async def work() -> str:
            began.append(len(began))
            await asyncio.sleep(0.01)
            return "done"

        assert await to_its_end(work) == "done"
        task = asyncio.create_task(to_its_end(work))
        for _ in range(5):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert began == [0, 1]

        async def fail() -> None:
            raise KeyError

        with pytest.raises(KeyError):
            await to_its_end(fail)

    asyncio.run(main())


def test_a_renewal_goes_on_when_all_tasks_were_cancelled(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server may do with what it finds in its loop."""
    monkeypatch.setattr(renewals, "_PART", 50)

    async def main() -> None:
        held = AsyncLock(alock("a").redis, key_of("a"), timeout=10, auto_renewal=True)
        renewed = asyncio.Event()
        prolong = held._prolong

        async def interrupted(holding: Any) -> bool:
            if not renewed.is_set():
                renewed.set()
                await asyncio.sleep(20)
            return await prolong(holding)

        held._prolong = interrupted  # type: ignore[method-assign]
        await held.acquire()
        first = held._holding.valid_until
        await asyncio.wait_for(renewed.wait(), 20)
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        async with asyncio.timeout(20):
            while held._holding.valid_until == first:
                assert renewals.clock() < first
                await asyncio.sleep(0.005)
        await held.release()

    asyncio.run(main())


@pytest.fixture
def controls(redis: Redis) -> SemaphoreControls:
    return SemaphoreControls("api")


def test_a_limit_may_be_left_in_another_task_than_it_was_entered_in(controls: SemaphoreControls) -> None:
    shared = limit_concurrency("api", limit=9)

    async def main() -> None:
        stack = AsyncExitStack()
        permit = await asyncio.create_task(stack.enter_async_context(shared))
        await asyncio.create_task(stack.aclose())
        assert permit.is_released

    asyncio.run(main())
    assert controls.info().used == 0


def test_a_limit_that_is_left_in_another_task_takes_the_permits_of_those_that_have_ended_first(
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


def test_a_limit_may_be_left_while_the_task_that_entered_it_goes_on(controls: SemaphoreControls) -> None:
    shared = limit_concurrency("api", limit=9)

    async def main() -> None:
        stack, entered, done = AsyncExitStack(), asyncio.Event(), asyncio.Event()

        async def enter() -> None:
            await stack.enter_async_context(shared)
            entered.set()
            await done.wait()

        entering = asyncio.create_task(enter())
        await entered.wait()
        await stack.aclose()
        assert controls.info().used == 0
        done.set()
        await entering

    asyncio.run(main())


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

    with pytest.raises(RuntimeError, match="more often than it was entered"):
        shared.__exit__(None, None, None)
    with shared, pytest.raises(RuntimeError, match="more often than it was entered"):
        asyncio.run(shared.__aexit__(None, None, None))
