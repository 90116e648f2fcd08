"""The scripts of semaphores, each with what is done when its calls are repeated."""

from __future__ import annotations

from redis import Redis

from components.services.semaphores import Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.queues import LONG_AGO
from tests.support.repeating import Act, cases
from tests.support.semaphores import Waiter, let_pass, take

case = cases("semaphores")


@case
def acquire_permit(redis: Redis) -> Act:
    semaphore = Semaphore("api", limit=5)
    take(semaphore, weight=2)
    return lambda: [take(semaphore, weight=3)[0].id, semaphore.try_acquire()]


@case
def acquire_permit_after_all_others_died(redis: Redis) -> Act:
    """Holders, and the first of the queue; the next is woken."""
    semaphore = Semaphore("api", limit=5, lease=10)
    take(semaphore)
    take(semaphore, weight=4)
    dead, waiter, other = Waiter(semaphore), Waiter(semaphore, weight=3), Waiter(semaphore)
    dead.ask()
    let_pass(redis, "api", 10)
    Semaphore("api", limit=5).acquire(weight=5)
    for each in (waiter, other):
        each.ask()
    redis.zadd(SemaphoreKeys("api").queue, {waiter.id: LONG_AGO})
    let_pass(redis, "api", 30)
    redis.zadd(SemaphoreKeys("api").beats, {waiter.id: 2**53, other.id: 2**53})
    return waiter.ask


@case
def wait_for_permit(redis: Redis) -> Act:
    semaphore = Semaphore("api", limit=1)
    take(semaphore)
    Waiter(semaphore).ask()
    return Waiter(semaphore).ask


@case
def release_permit(redis: Redis) -> Act:
    semaphore = Semaphore("api", limit=3)
    permit = semaphore.acquire(weight=2)
    Waiter(semaphore, weight=3).ask()
    return permit.release


@case
def evict_permit(redis: Redis) -> Act:
    semaphore = Semaphore("api", limit=3)
    permit = semaphore.acquire(weight=2)
    return lambda: semaphore.evict(permit.id)


@case
def leave_queue(redis: Redis) -> Act:
    semaphore = Semaphore("api", limit=1)
    take(semaphore)
    waiter = Waiter(semaphore)
    waiter.ask()
    Waiter(semaphore).ask()
    return waiter.leave


@case
def refresh_permit(redis: Redis) -> Act:
    return Semaphore("api", limit=1).acquire().refresh


@case
def set_limit(redis: Redis) -> Act:
    semaphore = Semaphore("api", limit=1)
    take(semaphore)
    Waiter(semaphore).ask()
    return lambda: semaphore.set_limit(2)


@case
def reset_limit(redis: Redis) -> Act:
    semaphore = Semaphore("api", limit=1)
    take(semaphore)
    semaphore.set_limit(2)
    return semaphore.reset_limit
