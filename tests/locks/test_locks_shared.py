"""One lock object for many threads or coroutines; and who is interrupted, cancelled or forked on the way."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import LockError

from components.exceptions import LockNotAcquired
from components.kit.client import get_async_client
from components.services.locks import alock, lock
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
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


def left_behind(redis: Redis, name: str) -> dict[str, object]:
    """What a lock that nobody holds and nobody waits for may not have."""
    return {
        "holder": redis.get(key_of(name)),
        "queue": redis.zrange(queue_of(name), 0, -1),
        "beats": redis.zrange(LockKeys.named(name).beats, 0, -1),
        "held": redis.zrange(LockKeys.named(name).held, 0, -1)[1:],  # the first is the latest fence of all
    }


NOTHING: dict[str, object] = {"holder": None, "queue": [], "beats": [], "held": []}


@pytest.mark.parametrize("is_fair", [False, True], ids=["any order", "fair"])
def test_threads_that_share_a_lock_hold_it_one_at_a_time(redis: Redis, is_fair: bool) -> None:
    shared, gauge, tokens = lock("a", fair=is_fair), Gauge(), set[bytes]()
    everybody = threading.Barrier(8)

    def work(number: int) -> list[int]:
        fences = []
        everybody.wait(WAIT)
        for _ in range(10):
            with shared as held, gauge:
                tokens.add(held.local.token)
                fences.append(held.fence)
                assert held.owned()
        return fences

    with ThreadPoolExecutor(8) as pool:
        fences = list(pool.map(work, range(8)))

    assert (gauge.entries, gauge.collisions) == (80, 0)
    assert len(tokens) == 80
    assert len({fence for each in fences for fence in each}) == 80
    assert left_behind(redis, "a") == NOTHING


def test_coroutines_that_share_a_lock_hold_it_one_at_a_time(redis: Redis) -> None:
    gauge, tokens = Gauge(), set[bytes]()

    async def main() -> None:
        shared = alock("a")

        async def work() -> None:
            for _ in range(4):
                async with shared as held:
                    with gauge:
                        tokens.add(held.local.token)
                        assert await held.owned()
                        await asyncio.sleep(0)

        await asyncio.gather(*(work() for _ in range(12)))

    asyncio.run(main())
    assert (gauge.entries, gauge.collisions) == (48, 0)
    assert len(tokens) == 48
    assert left_behind(redis, "a") == NOTHING


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
        with pytest.raises(LockError, match="not owned"):
            await shared.release()
        with pytest.raises(LockError, match="not held here"):
            _ = shared.fence
        assert await shared.locked()
        is_over.set()
        await holding

    asyncio.run(main())


def test_the_children_of_a_coroutine_share_what_it_holds(redis: Redis) -> None:
    async def main() -> None:
        shared = alock("a", timeout=5)
        async with shared as held:
            fence = held.fence

            async def help_out() -> int:
                await shared.ensure_held()
                await shared.extend(10)
                return shared.fence

            assert await asyncio.create_task(help_out()) == fence
            assert await asyncio.gather(help_out(), help_out()) == [fence, fence]
            assert held.remaining > 25

    asyncio.run(main())


def test_a_lock_acquired_in_a_nested_block_belongs_to_its_parent_afterwards(redis: Redis) -> None:
    """asyncio.wait_for() makes a child before Python 3.12."""

    async def main() -> None:
        shared = alock("a")
        assert await asyncio.wait_for(shared.acquire(), WAIT)
        assert await shared.owned()
        await shared.release()
        assert await asyncio.create_task(shared.acquire())
        assert await shared.owned()
        await shared.release()

    asyncio.run(main())
    assert left_behind(redis, "a") == NOTHING


def test_a_thread_and_a_coroutine_keep_each_other_out(redis: Redis) -> None:
    gauge = Gauge()

    def in_thread() -> None:
        for _ in range(20):
            with lock("a"), gauge:
                pass

    async def in_loop() -> None:
        for _ in range(20):
            async with alock("a"):
                with gauge:
                    await asyncio.sleep(0)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(in_thread), pool.submit(lambda: asyncio.run(in_loop()))]:
            done.result(WAIT)

    assert (gauge.entries, gauge.collisions) == (40, 0)


@pytest.mark.parametrize("is_fair", [False, True], ids=["any order", "fair"])
def test_a_waiter_that_is_cancelled_leaves_nothing_behind(redis: Redis, is_fair: bool) -> None:
    holder = lock("a", timeout=None)
    holder.acquire()

    async def main() -> None:
        waiting = asyncio.create_task(alock("a", fair=is_fair).acquire())
        while not await get_async_client().zcard(queue_of("a")):
            await asyncio.sleep(0.005)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert redis.zcard(queue_of("a")) == 0
    holder.release()
    assert left_behind(redis, "a") == NOTHING


def test_whenever_an_acquisition_is_cancelled_nothing_is_held(redis: Redis) -> None:
    """After so many turns of the loop each; some are through by then."""

    async def main() -> list[bool]:
        outcomes = []
        async with alock("warm"):  # connections and scripts are there
            pass
        for turns in range(12):
            shared = alock("a", timeout=None)
            acquiring = asyncio.create_task(shared.acquire())
            for _ in range(turns):
                await asyncio.sleep(0)
            acquiring.cancel()
            try:
                outcomes.append(await acquiring)
            except asyncio.CancelledError:
                outcomes.append(False)
                assert left_behind(redis, "a") == NOTHING
                continue
            await shared.release()
        return outcomes

    assert False in asyncio.run(main())
    assert left_behind(redis, "a") == NOTHING


def test_a_timeout_of_the_caller_leaves_nothing_behind_and_wakes_the_next(redis: Redis) -> None:
    holder = lock("a", timeout=None)
    holder.acquire()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(alock("a", fair=True).acquire(), 0.05)

    asyncio.run(main())
    assert redis.zcard(queue_of("a")) == 0
    holder.release()
    assert lock("a", fair=True).acquire(blocking=False)


@pytest.mark.parametrize("is_fair", [False, True], ids=["any order", "fair"])
def test_a_waiter_that_is_interrupted_leaves_nothing_behind(redis: Redis, alarm: Any, is_fair: bool) -> None:
    holder, waiter = lock("a", timeout=None), lock("a", fair=is_fair)
    holder.acquire()
    alarm(0.05)

    with pytest.raises(KeyboardInterrupt):
        waiter.acquire()

    assert redis.zcard(queue_of("a")) == 0
    assert not waiter.owned()
    holder.release()
    assert left_behind(redis, "a") == NOTHING
    assert waiter.acquire(blocking=False)


def test_an_interrupt_in_the_block_releases_it(redis: Redis, alarm: Any) -> None:
    def work() -> None:
        with lock("a", timeout=None):
            alarm(0.01)
            threading.Event().wait(WAIT)

    with pytest.raises(KeyboardInterrupt):
        work()

    assert left_behind(redis, "a") == NOTHING


def test_a_waiting_call_is_woken_though_the_first_was_interrupted(redis: Redis, alarm: Any) -> None:
    holder, second = lock("a", timeout=None), lock("a", fair=True)
    holder.acquire()
    alarm(0.05)
    with pytest.raises(KeyboardInterrupt):
        lock("a", fair=True).acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second.acquire)
        assert eventually(lambda: redis.zcard(queue_of("a")))
        holder.release()

        assert waiting.result(WAIT)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_in_the_block_is_no_second_holder(redis: Redis) -> None:
    """The child inherits the token: what it does with it is what the parent does. It renews nothing."""
    with lock("a", timeout=5, auto_renewal=True) as held:
        child = os.fork()
        if child == 0:
            names = {thread.name for thread in threading.enumerate()}
            os._exit(0 if held.local.token and "renewals" not in names else 1)
        _pid, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 0
        assert held.owned()
        with pytest.raises(LockNotAcquired), lock("a", blocking=False):
            pytest.fail("both hold it")

    assert left_behind(redis, "a") == NOTHING
