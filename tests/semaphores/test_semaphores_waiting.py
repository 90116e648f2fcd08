"""Waiting, with threads: until somebody leaves, dies, or patience ends."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis

from components.exceptions import PermitLost, PermitReleased, SemaphoreFull
from components.kit import leases
from components.services.semaphores import Permit, Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.semaphores import Waiter, let_pass, queued, take
from tests.support.waiting import eventually


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=1, lease=30)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def start(pool: ThreadPoolExecutor, redis: Redis, semaphore: Semaphore) -> Future[Permit]:
    before = len(queued(redis, semaphore.name))
    future = pool.submit(semaphore.acquire)
    assert eventually(lambda: len(queued(redis, semaphore.name)) > before or future.done())
    return future


def test_a_waiting_request_gets_a_returned_permit_and_leaves_nothing_behind(
    semaphore: Semaphore, redis: Redis, pool: ThreadPoolExecutor
) -> None:
    [permit] = take(semaphore)
    waiting = start(pool, redis, semaphore)
    assert semaphore.info().waiting == 1
    permit.release()

    waiting.result(20).release()

    info = semaphore.info()
    assert (info.used, info.waiting, info.granted, info.waits) == (0, 0, 2, 1)
    assert 0 < info.longest_wait == info.total_waited < 20
    left = {key.rpartition(b":")[0].rpartition(b":")[2] for key in redis.keys("*")}
    assert not left & {b"queue", b"beats", b"wake", b"holders", b"heavy", b"since"}


def test_a_waiter_wakes_when_a_lease_ends_that_nobody_gave_back(redis: Redis) -> None:
    Semaphore("api", limit=1, lease=0.2).acquire()
    semaphore = Semaphore("api", limit=1)

    semaphore.acquire(wait=20).release()

    assert semaphore.info().expired == 1


def test_who_died_in_the_queue_holds_nobody_up_for_long(semaphore: Semaphore, redis: Redis) -> None:
    [permit] = take(semaphore)
    for _ in range(5):
        Waiter(semaphore).ask()
    permit.release()

    semaphore.acquire(wait=20).release()

    assert semaphore.info().waiting == 0


def test_a_wake_up_that_gets_lost_is_made_up_for(
    semaphore: Semaphore, redis: Redis, pool: ThreadPoolExecutor
) -> None:
    [permit] = take(semaphore)
    waiting = start(pool, redis, semaphore)
    # As if it had been given back, and the wake-up taken by somebody who died.
    redis.zrem(SemaphoreKeys("api").holders, permit.id)

    waiting.result(20).release()


def test_an_interrupted_request_leaves_the_queue(
    semaphore: Semaphore, redis: Redis, pool: ThreadPoolExecutor, alarm: Any
) -> None:
    take(semaphore)

    def interrupt() -> None:
        assert eventually(lambda: queued(redis, "api"))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

    pool.submit(interrupt)
    with pytest.raises(KeyboardInterrupt):
        semaphore.acquire()

    assert queued(redis, "api") == []
    assert semaphore.info().given_up == 1


async def become(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def test_a_permit_is_awaited_refreshed_and_given_back(semaphore: Semaphore, redis: Redis) -> None:
    async def scene() -> None:
        permit = await semaphore.aacquire(wait=1, owner="order 7")
        [holder] = semaphore.holders()
        assert (holder.holder.thread, holder.holder.owner) == ("shipping", "order 7")
        assert await semaphore.atry_acquire() is None
        let_pass(redis, "api", 20)
        await permit.arefresh()
        assert semaphore.holders()[0].remaining > 29
        await permit.arelease()
        with pytest.raises(PermitReleased):
            await permit.arelease()
        again = await semaphore.atry_acquire()
        assert again
        await semaphore.arefresh(again.id)
        await semaphore.arelease(again.id)
        async with semaphore.aacquire(wait=1) as permit:
            permit.ensure_held()
        async with await semaphore.aacquire():
            assert semaphore.info().used == 1
            for patience in (0, 0.02):
                with pytest.raises(SemaphoreFull):
                    await semaphore.aacquire(wait=patience)
        with pytest.raises(PermitLost):
            async with semaphore.aacquire() as permit:
                semaphore.evict(permit.id)

    async def main() -> None:
        await asyncio.create_task(scene(), name="shipping")

    asyncio.run(main())
    assert semaphore.info().used == 0


def test_a_cancellation_that_got_lost_on_the_way_counts(redis: Redis) -> None:
    """As asyncio.wait_for() of Python 3.11 loses those that come when it is done."""

    class Losing(Semaphore):
        async def _ask(self, *args: Any) -> Any:
            said = await super()._ask(*args)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            return said

    async def acquire() -> None:
        await Losing("api", limit=1).aacquire()

    async def scene() -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(acquire())

    asyncio.run(scene())
    assert Semaphore("api", limit=1).info().used == 0


def test_the_loop_renews_and_tells_of_a_loss(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PART", 200)
    semaphore = Semaphore("api", limit=1, lease=10)

    async def scene() -> None:
        async with semaphore.aacquire(auto_renewal=True) as permit:
            first = permit.valid_until
            await become(lambda: permit.valid_until > first)
        evicted = await semaphore.aacquire(auto_renewal=True)
        semaphore.evict(evicted.id)
        ending = await Semaphore("api", limit=1, lease=0.05).aacquire()
        for permit in (evicted, ending):
            assert isinstance(permit.lost, asyncio.Event)
            async with asyncio.timeout(20):
                await permit.lost.wait()
            with pytest.raises(PermitLost):
                permit.ensure_held()

    asyncio.run(scene())
