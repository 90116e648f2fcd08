"""A permit in its holder's hands: how long it is held, refreshed and lost, and what a with block makes of it."""

from __future__ import annotations

import gc
import logging
import threading

import pytest
from redis import Redis

from components.exceptions import PermitLost, PermitReleased, RedisUnavailable
from components.kit import leases
from components.services.semaphores import Permit, Semaphore
from components.testing import redis_at
from tests.support.semaphores import Waiter, let_pass, take
from tests.support.waiting import eventually


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=1, lease=10)


def test_a_permit_knows_what_it_is(semaphore: Semaphore) -> None:
    permit = Semaphore("api", limit=3, lease=10).acquire(weight=2)

    assert (permit.name, permit.weight, permit.lease, permit.is_released) == ("api", 2, 10, False)
    assert 9 < permit.remaining <= 10
    assert not permit.lost.is_set()
    permit.ensure_held()


def test_a_refreshed_lease_begins_anew(semaphore: Semaphore, redis: Redis) -> None:
    permit = semaphore.acquire()
    let_pass(redis, "api", 9)
    permit.valid_until -= 9

    permit.refresh()
    let_pass(redis, "api", 9)

    assert permit.remaining > 9
    assert semaphore.try_acquire() is None
    permit.release()


def test_a_permit_is_refreshed_by_its_id_with_the_lease_of_who_asks(semaphore: Semaphore) -> None:
    permit = semaphore.acquire()

    Semaphore("api", limit=1, lease=100).refresh(permit.id)

    [holder] = semaphore.holders()
    assert 99 < holder.remaining <= 100


def test_refreshing_counts_nothing(semaphore: Semaphore) -> None:
    permit = semaphore.acquire()

    permit.refresh()
    permit.refresh()

    assert (semaphore.info().used, semaphore.info().granted) == (1, 1)


def test_a_permit_whose_lease_has_ended_is_not_refreshed_even_if_nobody_took_it(
    semaphore: Semaphore, redis: Redis
) -> None:
    """The book's refresh brings it back to life."""
    permit = semaphore.acquire()
    let_pass(redis, "api", 10)

    with pytest.raises(PermitLost, match="its lease ran out"):
        permit.refresh()

    assert permit.lost.is_set()
    assert permit.remaining == 0
    assert semaphore.info().used == 0
    with pytest.raises(PermitLost):
        permit.ensure_held()


def test_a_permit_that_was_released_is_not_refreshed(semaphore: Semaphore) -> None:
    permit = semaphore.acquire()
    permit.release()

    for again in (permit, permit.id):
        with pytest.raises(PermitReleased):
            semaphore.refresh(again)
    with pytest.raises(PermitReleased):
        permit.ensure_held()

    assert semaphore.info().used == 0


def test_half_a_minute_after_its_release_a_permit_is_unknown(semaphore: Semaphore, redis: Redis) -> None:
    permit = semaphore.acquire()
    permit.release()
    let_pass(redis, "api", 31)

    with pytest.raises(PermitLost):
        semaphore.release(permit.id)


def test_a_with_block_gives_its_permit_back(semaphore: Semaphore) -> None:
    with semaphore.acquire(wait=2) as permit:
        assert semaphore.info().used == 1
        permit.refresh()

    assert permit.is_released
    assert semaphore.info().used == 0


def test_a_with_block_gives_its_permit_back_if_it_raises(semaphore: Semaphore) -> None:
    with pytest.raises(KeyError), semaphore.acquire():
        raise KeyError

    assert semaphore.info().used == 0


def test_a_permit_may_be_released_inside_of_its_block(semaphore: Semaphore) -> None:
    with semaphore.acquire() as permit:
        permit.release()

    assert semaphore.info().used == 0


def test_leaving_a_block_says_that_the_permit_was_lost(semaphore: Semaphore, redis: Redis) -> None:
    with pytest.raises(PermitLost, match="its lease ran out"), semaphore.acquire():
        let_pass(redis, "api", 10)


def test_an_error_of_the_block_itself_is_not_covered_up(
    semaphore: Semaphore, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def lose_and_raise() -> None:
        with semaphore.acquire():
            let_pass(redis, "api", 10)
            raise KeyError("what went wrong first")

    with caplog.at_level(logging.WARNING), pytest.raises(KeyError):
        lose_and_raise()

    [record] = caplog.records
    assert "what went wrong first" in record.getMessage()
    assert "its lease ran out" in record.getMessage()


def test_leaving_a_block_says_that_somebody_else_has_given_the_permit_back(
    semaphore: Semaphore, caplog: pytest.LogCaptureFixture
) -> None:
    def work(error: BaseException | None) -> None:
        with semaphore.acquire() as permit:
            semaphore.release(permit.id)
            if error:
                raise error

    with pytest.raises(PermitReleased):
        work(None)
    with caplog.at_level(logging.WARNING), pytest.raises(KeyError):
        work(KeyError())

    assert "was released before" in caplog.text


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
    assert permit.lost.wait(10)
    with pytest.raises(PermitLost):
        permit.ensure_held()


def test_a_permit_that_was_given_back_is_not_lost(redis: Redis) -> None:
    permit = Semaphore("api", limit=1, lease=10).acquire()
    lost = permit.lost
    permit.release()

    assert not lost.is_set()
    assert permit.remaining == 0


def test_a_renewed_permit_outlives_its_lease(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PART", 20)
    semaphore = Semaphore("api", limit=1, lease=2)
    with semaphore.acquire(auto_renewal=True) as permit:
        refreshed, first = [], permit.valid_until
        assert eventually(lambda: _note(refreshed, permit.valid_until) >= 5 and leases.clock() > first)
        assert semaphore.try_acquire() is None
        permit.ensure_held()

    assert semaphore.info().used == 0


def _note(seen: list[float], value: float) -> int:
    if value not in seen:
        seen.append(value)
    return len(seen)


def test_a_renewed_permit_learns_that_it_was_evicted(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PART", 100)
    semaphore = Semaphore("api", limit=1, lease=10)
    permit = semaphore.acquire(auto_renewal=True)

    assert semaphore.evict(permit.id)

    assert permit.lost.wait(10)
    with pytest.raises(PermitLost, match="was evicted"):
        permit.release()


def test_rows_without_references_are_not_renewed(redis: Redis) -> None:
    Semaphore("api", limit=1, lease=0.3).acquire(auto_renewal=True)
    gc.collect()

    semaphore = Semaphore("api", limit=1, lease=10)
    with semaphore.acquire(wait=10):
        assert semaphore.info().expired == 1


def test_a_late_grant_counts_from_before_its_request(semaphore: Semaphore, redis: Redis) -> None:
    """A reply that took long does not make the holder believe that it has longer than it has."""
    waiter = Waiter(semaphore)
    waiter.ask()
    let_pass(redis, "api", 7)

    permit = _taken(semaphore, waiter)

    assert permit.remaining <= 3


def _taken(semaphore: Semaphore, waiter: Waiter) -> Permit:
    permit = semaphore._take(waiter._wish)
    assert permit is not None
    return permit


def test_nothing_of_a_semaphore_stays_for_ever(semaphore: Semaphore, redis: Redis) -> None:
    for weight in (2, 1):
        take(Semaphore("heavy", limit=3), weight=weight)
    Waiter(Semaphore("heavy", limit=3)).ask()
    semaphore.acquire().release()

    assert redis.dbsize() > 5
    assert [key for key in redis.keys("*") if redis.ttl(key) == -1] == []
