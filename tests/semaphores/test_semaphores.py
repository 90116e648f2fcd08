"""
Permits: how many there are at a time, who is next, and what a permit is to its holder. What follows from any order of
calls is in the model.
"""

import asyncio
import gc
import logging
import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import (
    ForeignPermit,
    InvalidName,
    InvalidValue,
    PermitLost,
    PermitReleased,
    RedisUnavailable,
    SemaphoreFull,
)
from components.kit import leases
from components.kit.client import get_client
from components.kit.sync_async import at_once
from components.services.semaphores import Semaphore, SemaphoreControls, limit_concurrency
from components.services.semaphores.keys import SemaphoreKeys
from components.testing import redis_at
from tests.support.full import full
from tests.support.semaphores import Waiter, let_pass, queued, take
from tests.support.snapshots import snapshot
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("no_heartbeats")


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=2, lease=100)


@pytest.mark.parametrize("name", ["{a}", "}", "%7B", "ä ö", "x" * 500, "a:b", "\n"])
def test_there_are_as_many_permits_as_the_limit_says_whatever_it_is_called(redis: Redis, name: str) -> None:
    semaphore = Semaphore(name, limit=2)
    with semaphore.acquire() as first, semaphore.acquire() as second:
        assert first.name == second.name == name
        assert first.id != second.id
        assert semaphore.try_acquire() is None
        with pytest.raises(SemaphoreFull):
            semaphore.acquire(wait=0)
        assert Semaphore("another", limit=1).try_acquire() is not None
        assert (semaphore.info().used, semaphore.info().waiting) == (2, 0)

    assert semaphore.info().used == 0


def test_a_request_made_while_the_clock_turned_back_is_behind_earlier_ones(
    semaphore: Semaphore, redis: Redis
) -> None:
    take(semaphore, 2)
    first, second = Waiter(semaphore), Waiter(semaphore)
    first.ask()
    let_pass(redis, "api", -3600)
    second.ask()

    assert queued(redis, "api") == [first.id, second.id]


def test_what_a_clock_stored_that_was_a_day_ahead_ends_as_if_it_were_stored_now(redis: Redis) -> None:
    take(Semaphore("api", limit=2, lease=100))
    other = Semaphore("api", limit=2, lease=10)
    Semaphore("api", limit=2, lease=200).refresh(take(other)[0])
    dead = Waiter(other)
    dead.ask()
    let_pass(redis, "api", -86_400)

    assert Waiter(other).ask_all()[1] <= 60_000  # when the other waiter is dead, see no_heartbeats
    let_pass(redis, "api", 61)
    assert other.try_acquire() is None
    assert max(each.since for each in other.holders()).timestamp() <= redis.time()[0] - 60
    let_pass(redis, "api", 200 - 61)
    assert len(take(other, 2)) == 2


def test_a_waiter_is_told_when_to_look_again(semaphore: Semaphore, redis: Redis) -> None:
    take(Semaphore("api", limit=2, lease=20))
    take(semaphore)

    said, left = Waiter(semaphore).ask_all()
    assert said == "wait"
    assert 1_000 < left <= 20_000
    redis.zadd(SemaphoreKeys("api").holders, {redis.zrange(SemaphoreKeys("api").holders, 0, 0)[0]: 9e15})
    let_pass(redis, "api", 59.7)  # of the minute for which the other counts as alive
    assert Waiter(semaphore).ask_all()[1] <= 300


def test_a_weight_above_a_limit_that_was_set_meanwhile_is_refused_and_holds_nobody_up(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=5)
    take(semaphore)
    heavy = Waiter(semaphore, weight=5)
    assert heavy.ask() == "wait"
    semaphore.set_limit(3)

    assert heavy.ask_all() == ("heavy", 3)
    with pytest.raises(InvalidValue):
        semaphore.acquire(weight=4)

    heavy.leave()
    assert semaphore.info().waiting == 0
    assert semaphore.try_acquire(weight=2) is not None


def test_on_a_full_server_permits_are_taken_refreshed_and_given_back(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=2)
    first, second = take(semaphore, 2)
    waiter = Waiter(semaphore)
    waiter.ask()

    with full(redis):
        first.refresh()
        assert at_once(first._renew())
        first.release()
        assert waiter.is_woken(redis)
        assert semaphore.evict(second.id)
        waiter.leave()
        permit = semaphore.acquire(wait=0)
        waiting = Waiter(semaphore, weight=2)
        assert waiting.ask() == "wait"
        semaphore.set_limit(3)
        assert waiting.is_woken(redis)
        waiting.leave()
        permit.release()
        semaphore.reset_limit()

    assert (semaphore.info().used, semaphore.info().waiting, semaphore.info().limit) == (0, 0, 2)


def test_a_permit_knows_what_it_is(semaphore: Semaphore) -> None:
    permit = semaphore.acquire(weight=2)

    assert (permit.name, permit.weight, permit.lease, permit.is_released) == ("api", 2, 100, False)
    assert 80 < permit.remaining <= 100
    lost = permit.lost
    permit.ensure_held()
    permit.release()
    assert permit.is_released
    assert permit.remaining == 0
    assert not lost.is_set()
    with pytest.raises(PermitReleased):
        permit.ensure_held()


def test_a_with_block_gives_its_permit_back_unless_that_was_done_in_it(semaphore: Semaphore) -> None:
    with semaphore.acquire(wait=2) as permit:
        assert semaphore.info().used == 1
    assert permit.is_released
    with pytest.raises(KeyError), semaphore.acquire():
        raise KeyError
    with semaphore.acquire() as permit:
        permit.release()
    assert semaphore.info().used == 0


@pytest.mark.parametrize(("how", "error"), [("lost", PermitLost), ("released", PermitReleased)])
def test_leaving_a_block_says_what_became_of_the_permit_unless_the_block_raises(
    semaphore: Semaphore, redis: Redis, how: str, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    def work(wrong: BaseException | None) -> None:
        with semaphore.acquire() as permit:
            let_pass(redis, "api", 100) if how == "lost" else semaphore.release(permit.id)
            if wrong:
                raise wrong

    with pytest.raises(error):
        work(None)
    with caplog.at_level(logging.WARNING), pytest.raises(KeyError):
        work(KeyError("what went wrong first"))
    [record] = caplog.records
    assert "what went wrong first" in record.getMessage()


def test_leaving_a_block_says_that_redis_is_away(semaphore: Semaphore) -> None:
    nowhere = redis_at("unix:///nowhere/redis")
    with pytest.raises(RedisUnavailable), semaphore.acquire() as permit:
        nowhere.__enter__()
    nowhere.__exit__(None, None, None)

    assert not permit.is_released
    permit.release()
    assert semaphore.info().used == 0


def test_a_permit_tells_when_it_is_lost(redis: Redis) -> None:
    permit = Semaphore("api", limit=1, lease=0.05).acquire()

    assert isinstance(permit.lost, threading.Event)
    assert permit.lost.wait(20)
    with pytest.raises(PermitLost):
        permit.ensure_held()


def test_a_permit_is_renewed_while_it_is_referenced(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PART", 200)
    semaphore = Semaphore("api", limit=1, lease=10)
    with semaphore.acquire(auto_renewal=True) as permit:
        first = permit.valid_until
        assert eventually(lambda: permit.valid_until > first)
        assert semaphore.try_acquire() is None

    kept = len(list(leases._scheduler._kept))
    dropped = semaphore.acquire(auto_renewal=True)
    assert len(list(leases._scheduler._kept)) == kept + 1
    del dropped
    gc.collect()
    assert eventually(lambda: len(list(leases._scheduler._kept)) == kept)


def test_a_late_grant_counts_from_before_its_request(semaphore: Semaphore, redis: Redis) -> None:
    """A reply that took long does not make the holder believe that it has longer than it has."""
    waiter = Waiter(semaphore)
    waiter.ask()
    let_pass(redis, "api", 70)

    permit = at_once(semaphore._take(get_client(), waiter._wish))

    assert permit
    assert permit.remaining <= 30


LIMITS = [0, -1, 1.0, math.nan, True, "3", None, 2**31]
LEASES = [0, -1, math.nan, math.inf, True, "30", None, 7 * 86_400 + 1]
WAITS = [-0.1, math.nan, math.inf, True, "2"]
WRONG: list[tuple[type[Exception], dict[str, Any]]] = [
    *((InvalidName, {"name": name}) for name in ("", "x" * 501, b"api", None, 7)),
    *((InvalidValue, {"limit": limit}) for limit in LIMITS),
    *((InvalidValue, {"lease": lease}) for lease in LEASES),
]


@pytest.mark.parametrize(("error", "wrong"), WRONG)
@pytest.mark.parametrize("make", [Semaphore, limit_concurrency])
def test_a_semaphore_cannot_be_made_of_it(
    make: Callable[..., Any], error: type[Exception], wrong: dict[str, Any]
) -> None:
    with pytest.raises(error):
        make(**{"name": "api", "limit": 1, **wrong})
    if "lease" not in wrong:
        with pytest.raises(error):
            SemaphoreControls(wrong.get("name", "api")).set_limit(wrong["limit"])


def test_the_bounds_themselves_are_valid(redis: Redis) -> None:
    semaphore = Semaphore("x" * 500, limit=2**31 - 1, lease=7 * 86_400)
    semaphore.set_limit(2**31 - 1)

    permit = semaphore.acquire(weight=2**31 - 1, wait=0)

    assert semaphore.info().used == permit.weight == 2**31 - 1
    assert 604_700 < semaphore.holders()[0].remaining <= 604_800
    assert Semaphore("a", limit=1, lease=0.001).try_acquire()


@pytest.mark.parametrize(
    "wrong", [*({"wait": wait} for wait in WAITS), *({"weight": weight} for weight in [*LIMITS, 4])], ids=str
)
def test_a_permit_cannot_be_asked_for_with_it(redis: Redis, wrong: dict[str, Any]) -> None:
    semaphore = Semaphore("api", limit=3)
    take(semaphore, 2)
    before = snapshot(redis)

    for ask in (
        lambda: semaphore.acquire(**wrong),
        lambda: asyncio.run(semaphore.aacquire(**wrong).__aenter__()),
        lambda: limit_concurrency("api", limit=3, **wrong),
    ):
        with pytest.raises(InvalidValue):
            ask()

    assert snapshot(redis) == before


@pytest.mark.parametrize("permit", ["", "a/b/c", "0123456789ab/0/x", "0123456789ab/1/x", 7, None, b"x"])
def test_only_permits_of_this_semaphore_are_taken(redis: Redis, permit: Any) -> None:
    controls = Semaphore("api", limit=3)

    for act in (controls.release, controls.refresh, controls.evict, controls.holder):
        with pytest.raises(ForeignPermit):
            act(permit)

    assert redis.keys("*") == []
