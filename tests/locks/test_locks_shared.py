"""One lock object for many threads or coroutines; and who is interrupted, cancelled or forked on the way."""

import asyncio
import os
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import LockError

from components.exceptions import PermitLost
from components.kit import leases as renewals
from components.services.locks import AsyncLock, alock, alocks, lock, locks
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.services.semaphores import Semaphore, limit_concurrency
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.waiting import eventually

WAIT = 20  # seconds, for what takes a moment


class Gauge:
    """How many are inside, and whether there ever were two."""

    def __init__(self) -> None:
        self.inside, self.entries, self.collisions = 0, 0, 0

    def __enter__(self) -> None:
        self.inside += 1
        self.entries += 1
        self.collisions += self.inside > 1

    def __exit__(self, *exc_info: object) -> None:
        self.inside -= 1


def queue_of(name: str) -> str:
    return LockKeys.named(name).queue


def left_behind(redis: Redis) -> list[Any]:
    """What a lock that nobody holds and nobody waits for may not have; [] if there is nothing of it."""
    of_a = LockKeys.named("a")
    held = redis.zrange(of_a.held, 0, -1)[2:]  # the first are the latest fence and the longest time of all
    found = [redis.get(of_a.lock), held, *(redis.zrange(key, 0, -1) for key in (of_a.queue, of_a.beats))]
    return [each for each in found if each]


@pytest.mark.parametrize("is_fair", [False, True], ids=["any order", "fair"])
def test_threads_that_share_a_lock_hold_it_one_at_a_time(redis: Redis, is_fair: bool) -> None:
    shared, gauge, tokens, fences = lock("a", fair=is_fair), Gauge(), set[bytes](), set[int]()
    everybody = threading.Barrier(8)

    def work() -> None:
        everybody.wait(WAIT)
        for _ in range(5):
            with shared as held, gauge:
                tokens.add(held.local.token)
                fences.add(held.fence)
                assert held.owned()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work) for _ in range(8)]:
            done.result()

    assert (gauge.entries, gauge.collisions, len(tokens), len(fences)) == (40, 0, 40, 40)
    assert left_behind(redis) == []


def test_a_coroutine_cannot_release_what_another_holds(redis: Redis) -> None:
    async def main() -> None:
        shared = alock("a")
        is_held, is_over = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with shared:
                is_held.set()
                await is_over.wait()

        holding = asyncio.create_task(hold())
        await is_held.wait()
        assert not await shared.owned()
        with pytest.raises(LockError):
            await shared.release()
        with pytest.raises(LockError):
            _ = shared.fence
        assert await shared.locked()
        is_over.set()
        await holding

    asyncio.run(main())


def test_the_children_of_a_coroutine_share_what_it_holds(redis: Redis) -> None:
    async def main() -> None:
        shared = alock("a", timeout=5)
        async with shared as held:

            async def help_out() -> int:
                await shared.ensure_held()
                await shared.extend(10)
                return shared.fence

            assert await asyncio.gather(help_out(), help_out()) == [held.fence, held.fence]
            assert held.remaining > 20
        assert await asyncio.create_task(shared.acquire())  # what a child acquired is its parent's afterwards
        assert await shared.owned()
        await shared.release()

    asyncio.run(main())
    assert left_behind(redis) == []


@pytest.mark.parametrize("is_fair", [False, True], ids=["any order", "fair"])
def test_a_waiter_that_is_interrupted_leaves_nothing_behind(redis: Redis, alarm: Any, is_fair: bool) -> None:
    holder, waiter, second = lock("a", timeout=None), lock("a", fair=is_fair), lock("a", fair=is_fair)
    holder.acquire()
    alarm(0.05)

    with pytest.raises(KeyboardInterrupt):
        waiter.acquire()

    assert redis.zcard(queue_of("a")) == 0
    assert not waiter.owned()
    with ThreadPoolExecutor(1) as pool:  # who waits after that is woken
        waiting = pool.submit(second.acquire)
        assert eventually(lambda: redis.zcard(queue_of("a")))
        holder.release()
        assert waiting.result(WAIT)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize(
    ("make", "is_free"),
    [
        (lambda: lock("a", timeout=5, auto_renewal=True), lambda: lock("a").acquire(blocking=False)),
        (lambda: locks(["a", "b"], timeout=5), lambda: lock("b").acquire(blocking=False)),
        (lambda: Semaphore("a", limit=1).acquire(auto_renewal=True), Semaphore("a", limit=1).try_acquire),
        (lambda: limit_concurrency("a", limit=1), Semaphore("a", limit=1).try_acquire),
    ],
    ids=["lock", "locks", "permit", "limit_concurrency"],
)
def test_a_child_that_is_forked_in_the_block_holds_releases_and_renews_nothing(
    redis: Redis, make: Callable[[], Any], is_free: Callable[[], Any]
) -> None:
    block = make()
    with ExitStack() as stack:
        stack.enter_context(block)
        child = os.fork()
        if child == 0:
            try:
                block.__exit__(None, None, None)
            except (LockError, PermitLost):
                os._exit("renewals" in {thread.name for thread in threading.enumerate()})
            os._exit(2)
        _pid, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        assert not is_free()

    # Leaving the block has released what it held, and has raised nothing.
    assert is_free()


NAMES = ("a", "b", "c")

Use = Callable[[], Awaitable[None]]


@asynccontextmanager
async def acquired(**options: Any) -> AsyncIterator[None]:
    held = alock("a", timeout=None)
    await held.acquire(**options)
    try:
        yield
    finally:
        await held.release()


@asynccontextmanager
async def permitted() -> AsyncIterator[None]:
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
