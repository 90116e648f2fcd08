"""Waiting, with threads: until somebody leaves, dies, or patience ends."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis

from components.exceptions import SemaphoreFull
from components.services.semaphores import Permit, Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.semaphores import Waiter, queued, take
from tests.support.waiting import eventually


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=1, lease=30)


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(20) as pool:
        yield pool


def start(pool: ThreadPoolExecutor, redis: Redis, semaphore: Semaphore, **options: Any) -> Future[Permit]:
    """One more that waits."""
    before = len(queued(redis, semaphore.name))
    future = pool.submit(semaphore.acquire, **options)
    assert eventually(lambda: len(queued(redis, semaphore.name)) > before or future.done())
    return future


def test_a_waiting_request_gets_a_returned_permit(
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


def test_waiters_are_served_in_order(semaphore: Semaphore, redis: Redis, pool: ThreadPoolExecutor) -> None:
    [permit] = take(semaphore)
    served: list[int] = []

    def wait_and_note(number: int) -> None:
        with semaphore.acquire():
            served.append(number)

    futures = []
    for number in range(12):
        futures.append(pool.submit(wait_and_note, number))
        assert eventually(lambda expected=number + 1: len(queued(redis, "api")) == expected)
    permit.release()
    for future in futures:
        future.result(20)

    assert served == list(range(12))


def test_there_are_never_more_holders_than_permits(redis: Redis, pool: ThreadPoolExecutor) -> None:
    semaphore, guard = Semaphore("api", limit=3), threading.Lock()
    now, most = 0, 0

    def work(number: int) -> None:
        nonlocal now, most
        for _ in range(20):
            weight = 1 + number % 3
            with semaphore.acquire(weight=weight):
                with guard:
                    now += weight
                    most = max(most, now)
                with guard:
                    now -= weight

    for future in [pool.submit(work, number) for number in range(12)]:
        future.result(60)

    info = semaphore.info()
    assert most == 3
    assert (info.used, info.waiting, info.granted) == (0, 0, 240)


def test_a_request_that_waited_long_enough_gives_up(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore)

    with pytest.raises(SemaphoreFull, match=r"no permit of weight 1 free within 0\.05 s"):
        semaphore.acquire(wait=0.05)

    info = semaphore.info()
    assert (info.waiting, info.given_up) == (0, 1)


def test_a_waiter_wakes_when_a_lease_ends_that_nobody_gave_back(redis: Redis) -> None:
    Semaphore("api", limit=1, lease=0.2).acquire()
    semaphore = Semaphore("api", limit=1)

    semaphore.acquire(wait=20).release()

    assert semaphore.info().expired == 1


def test_one_who_died_in_the_queue_holds_nobody_up_for_long(semaphore: Semaphore, redis: Redis) -> None:
    def has_waited() -> bool:
        """Not so if their places were over before it asked: the machine had stood still for that long."""
        [permit] = take(semaphore)
        for _ in range(5):
            Waiter(semaphore).ask()
        permit.release()
        before = semaphore.info().waits
        semaphore.acquire(wait=20).release()
        return semaphore.info().waits == before + 1

    assert eventually(has_waited)
    assert semaphore.info().waiting == 0


def test_a_wake_up_that_gets_lost_is_made_up_for(
    semaphore: Semaphore, redis: Redis, pool: ThreadPoolExecutor
) -> None:
    [permit] = take(semaphore)
    waiting = start(pool, redis, semaphore)
    [waiter] = queued(redis, "api")
    # As if it had been given back, and the wake-up taken by somebody who died.
    redis.zrem(SemaphoreKeys("api").holders, permit.id)

    waiting.result(20).release()

    assert redis.exists(f"{SemaphoreKeys('api').wake}:{waiter}") == 0


def test_a_raised_limit_wakes_the_waiters(
    semaphore: Semaphore, redis: Redis, pool: ThreadPoolExecutor
) -> None:
    take(semaphore)
    waiting = [start(pool, redis, semaphore) for _ in range(3)]

    semaphore.set_limit(4)

    for future in waiting:
        future.result(20)
    assert semaphore.info().used == 4


def test_an_interrupted_request_leaves_the_queue(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore)
    raised: list[BaseException] = []
    thread = threading.Thread(target=_noting(semaphore.acquire, raised))
    thread.start()
    assert eventually(lambda: queued(redis, "api"))

    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
    )
    thread.join()

    assert [type(error) for error in raised] == [KeyboardInterrupt]
    assert queued(redis, "api") == []
    assert semaphore.info().given_up == 1


def _noting(act: Callable[[], object], raised: list[BaseException]) -> Callable[[], None]:
    def run() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    return run


def test_a_wait_leaves_nothing_behind(semaphore: Semaphore, redis: Redis, pool: ThreadPoolExecutor) -> None:
    [permit] = take(semaphore)
    waiting = start(pool, redis, semaphore)
    permit.release()
    waiting.result(20).release()

    left = {key.rpartition(b":")[0].rpartition(b":")[2] for key in redis.keys("*")}

    assert not left & {b"queue", b"beats", b"wake", b"holders", b"heavy", b"since"}
