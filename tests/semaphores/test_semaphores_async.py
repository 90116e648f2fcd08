"""The asynchronous twins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from redis import Redis

from components.exceptions import PermitLost, PermitReleased, SemaphoreFull
from components.kit import leases
from components.services.semaphores import Semaphore
from tests.support.semaphores import let_pass, queued, take


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=1, lease=30)


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

    async def main() -> None:
        await asyncio.create_task(scene(), name="shipping")

    asyncio.run(main())
    assert semaphore.info().used == 0


@pytest.mark.parametrize("again", [False, True])
def test_who_is_cancelled_or_loses_patience_leaves_the_queue(
    semaphore: Semaphore, redis: Redis, again: bool
) -> None:
    take(semaphore)

    async def wait() -> None:
        await semaphore.aacquire()

    async def scene() -> None:
        with pytest.raises(SemaphoreFull):
            await semaphore.aacquire(wait=0)
        with pytest.raises(SemaphoreFull):
            async with semaphore.aacquire(wait=0.02):
                raise AssertionError
        task = asyncio.create_task(wait())
        await become(lambda: queued(redis, "api"))
        task.cancel()
        if again:
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert queued(redis, "api") == []

    asyncio.run(scene())
    assert (semaphore.info().waiting, semaphore.info().given_up) == (0, 2)


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


def test_a_lost_permit_is_said_at_the_end_of_its_block(semaphore: Semaphore, redis: Redis) -> None:
    async def lose(error: BaseException | None) -> None:
        async with semaphore.aacquire():
            let_pass(redis, "api", 30)
            if error:
                raise error

    async def scene() -> None:
        with pytest.raises(PermitLost):
            await lose(None)
        with pytest.raises(KeyError):
            await lose(KeyError())

    asyncio.run(scene())


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
