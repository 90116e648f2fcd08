"""
Coroutines that are cancelled, once and again and at any moment: what they held is given back before they end, and who
waited waits no more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest
from redis import Redis

from components.kit import leases as renewals
from components.kit.at_once import to_its_end
from components.services.locks import AsyncLock, alock, alocks, lock
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.services.semaphores import Semaphore, limit_concurrency
from components.services.semaphores.keys import SemaphoreKeys

NAMES = ("a", "b", "c")

Use = Callable[[], Awaitable[None]]


@asynccontextmanager
async def acquired(**options: Any) -> AsyncIterator[None]:
    """In two calls."""
    held = alock("a", timeout=None)
    await held.acquire(**options)
    try:
        yield
    finally:
        await held.release()


@asynccontextmanager
async def permitted() -> AsyncIterator[None]:
    """In two calls."""
    permit = await Semaphore("a", limit=1, lease=600).aacquire(auto_renewal=True)
    try:
        yield
    finally:
        await permit.arelease()


MAKE: dict[str, Callable[[], AbstractAsyncContextManager[Any]]] = {
    "lock": lambda: alock("a", timeout=None),
    "lock, fair": lambda: alock("a", timeout=None, fair=True),
    "lock, polling": lambda: alock("a", timeout=None, sleep=0.001),
    "lock, renewed": lambda: alock("a", timeout=60, auto_renewal=True),
    "lock, acquire and release": acquired,
    "lock, one token": lambda: alock("a", timeout=None, thread_local=False),
    "lock, given token": lambda: acquired(token="mine"),
    "locks": lambda: alocks(NAMES, timeout=None),
    "permit": lambda: Semaphore("a", limit=1, lease=600).aacquire(),
    "permit, acquire and release": permitted,
    "limit": lambda: limit_concurrency("a", limit=1, lease=600),
}


@limit_concurrency("a", limit=1, lease=600)
async def decorated() -> None:
    await asyncio.sleep(0.001)


def use_of(make: Callable[[], AbstractAsyncContextManager[Any]]) -> Use:
    async def use() -> None:
        async with make():
            await asyncio.sleep(0.001)

    return use


USES: dict[str, Use] = {**{name: use_of(make) for name, make in MAKE.items()}, "limit, decorated": decorated}


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


@pytest.mark.parametrize("rounds", [8, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_nothing_is_held_and_nobody_waits_however_often_they_are_cancelled(
    redis: Redis, use: Use, rounds: int
) -> None:
    chance = random.Random(7)

    async def main(expected: dict[str, Any]) -> None:
        if not expected:
            await use()  # connections and scripts are there
        for _ in range(rounds):
            await cancel(use, chance)
            assert left(redis) == expected

    asyncio.run(main({}))
    holder, permit = lock("a", timeout=None), Semaphore("a", limit=1, lease=600).acquire()
    holder.acquire()
    asyncio.run(main(left(redis)))
    holder.release()
    permit.release()
    assert left(redis) == {}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_nothing_is_held_when_the_loop_ends_while_its_holder_is_being_cancelled(
    redis: Redis, use: Use
) -> None:
    chance = random.Random(9)
    for _ in range(5):

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
    monkeypatch.setattr(renewals, "_PART", 200)

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
                await asyncio.sleep(0.005)
        assert held.remaining <= 10
        await held.release()

    asyncio.run(main())
