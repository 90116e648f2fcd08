"""Waiting, with threads: until somebody leaves, dies, or patience ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from redis import Redis

from components.exceptions import SemaphoreFull
from components.services.semaphores import Permit, Semaphore
from components.services.semaphores import permit as permits
from components.services.semaphores import semaphore as semaphores
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.semaphores import Waiter, queued, take
from tests.support.waiting import eventually


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=1, lease=30)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def start(pool: ThreadPoolExecutor, redis: Redis, semaphore: Semaphore) -> Future[Permit]:
    """One more that waits."""
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


def test_there_are_never_more_holders_than_permits(redis: Redis, pool: ThreadPoolExecutor) -> None:
    semaphore, guard = Semaphore("api", limit=3), threading.Lock()
    now, most = 0, 0

    def work(number: int) -> None:
        nonlocal now, most
        for _ in range(10):
            weight = 1 + number % 3
            with semaphore.acquire(weight=weight):
                with guard:
                    now += weight
                    most = max(most, now)
                with guard:
                    now -= weight

    for future in [pool.submit(work, number) for number in range(6)]:
        future.result(60)

    info = semaphore.info()
    assert most == 3
    assert (info.used, info.waiting, info.granted) == (0, 0, 60)


def test_a_request_that_waited_long_enough_gives_up(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore)

    with pytest.raises(SemaphoreFull):
        semaphore.acquire(wait=0.05)

    info = semaphore.info()
    assert (info.waiting, info.given_up) == (0, 1)


def test_how_long_it_was_held_and_waited_for_is_measured(
    semaphore: Semaphore, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, tuple[str, float]] = {}
    for module in (permits, semaphores):
        monkeypatch.setattr(module, "took", lambda event, seconds, *, of: seen.update({event: (of, seconds)}))

    with semaphore.acquire(), pytest.raises(SemaphoreFull):
        semaphore.acquire(wait=0.02)

    assert seen.keys() == {"semaphores-held", "semaphores-waited", "semaphores-refused"}
    assert all(of == "api" and 0.02 <= seconds < 60 for of, seconds in seen.values())


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
