"""The asynchronous twins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
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


def run(coroutine: Coroutine[Any, Any, object]) -> None:
    asyncio.run(coroutine)


def test_a_permit_is_awaited_and_given_back(semaphore: Semaphore) -> None:
    async def scene() -> None:
        permit = await semaphore.aacquire(wait=1)
        assert await semaphore.atry_acquire() is None
        await permit.arefresh()
        await permit.arelease()
        with pytest.raises(PermitReleased):
            await permit.arelease()
        again = await semaphore.atry_acquire()
        assert again is not None
        await semaphore.arefresh(again.id)
        await semaphore.arelease(again.id)

    run(scene())

    assert semaphore.info().used == 0


def test_a_permit_stands_in_an_async_with_block(semaphore: Semaphore) -> None:
    async def scene() -> None:
        async with semaphore.aacquire(wait=1) as permit:
            assert semaphore.info().used == 1
            permit.ensure_held()
        async with await semaphore.aacquire():
            assert semaphore.info().used == 1

    run(scene())

    assert semaphore.info().used == 0


def test_the_holder_is_called_after_its_task(semaphore: Semaphore) -> None:
    async def scene() -> None:
        async with semaphore.aacquire(owner="order 7"):
            [holder] = semaphore.holders()
            assert (holder.holder.thread, holder.holder.owner) == ("shipping", "order 7")

    async def main() -> None:
        await asyncio.create_task(scene(), name="shipping")

    run(main())


def test_coroutines_are_served_in_order_and_never_more_than_the_limit(redis: Redis) -> None:
    semaphore, served = Semaphore("api", limit=2), []
    now = most = 0

    async def work(number: int) -> None:
        nonlocal now, most
        async with semaphore.aacquire():
            served.append(number)
            now += 1
            most = max(most, now)
            await become(lambda: most == 2)
            now -= 1

    async def scene() -> None:
        first, second = [await semaphore.aacquire() for _ in range(2)]
        tasks = []
        for number in range(10):
            tasks.append(asyncio.create_task(work(number)))
            await become(lambda: len(queued(redis, "api")) == len(tasks))
        await first.arelease()
        await second.arelease()
        await asyncio.gather(*tasks)

    run(scene())

    assert served == list(range(10))
    assert most == 2


def test_a_timeout_without_leavers_is_reported(semaphore: Semaphore) -> None:
    take(semaphore)

    async def scene() -> None:
        with pytest.raises(SemaphoreFull):
            await semaphore.aacquire(wait=0)
        with pytest.raises(SemaphoreFull):
            async with semaphore.aacquire(wait=0.02):
                raise AssertionError

    run(scene())

    assert (semaphore.info().waiting, semaphore.info().given_up) == (0, 1)


def test_a_coroutine_that_is_cancelled_leaves_the_queue(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore)

    async def wait() -> None:
        await semaphore.aacquire()

    async def scene() -> None:
        task = asyncio.create_task(wait())
        await become(lambda: queued(redis, "api"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert queued(redis, "api") == []

    run(scene())

    assert semaphore.info().given_up == 1


def test_a_coroutine_that_is_cancelled_again_while_it_leaves_leaves(
    semaphore: Semaphore, redis: Redis
) -> None:
    take(semaphore)

    async def wait() -> None:
        await semaphore.aacquire()

    async def scene() -> None:
        task = asyncio.create_task(wait())
        await become(lambda: queued(redis, "api"))
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await become(lambda: not queued(redis, "api"))

    run(scene())

    assert semaphore.info().given_up == 1


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

    run(scene())

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

    run(scene())


def test_the_loop_renews_and_tells_of_a_loss(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PART", 50)
    semaphore = Semaphore("api", limit=1, lease=10)

    async def scene() -> None:
        async with semaphore.aacquire(auto_renewal=True) as permit:
            seen = set()
            await become(lambda: seen.add(permit.valid_until) or len(seen) >= 5)
            assert semaphore.try_acquire() is None
        permit = await semaphore.aacquire(auto_renewal=True)
        semaphore.evict(permit.id)
        assert isinstance(permit.lost, asyncio.Event)
        async with asyncio.timeout(20):
            await permit.lost.wait()

    run(scene())


def test_an_awaited_permit_tells_when_its_lease_has_ended(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=1, lease=0.05)

    async def scene() -> None:
        permit = await semaphore.aacquire()
        async with asyncio.timeout(20):
            await permit.lost.wait()
        with pytest.raises(PermitLost):
            permit.ensure_held()

    run(scene())
