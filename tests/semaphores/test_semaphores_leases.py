"""A permit in its holder's hands: how long it is held, refreshed and lost, and what a with block makes of it."""

from __future__ import annotations

import gc
import logging
import threading

import pytest
from redis import Redis

from components.exceptions import PermitLost, PermitReleased, RedisUnavailable
from components.kit import leases
from components.services.semaphores import Semaphore
from components.testing import redis_at
from tests.support.semaphores import Waiter, let_pass
from tests.support.waiting import eventually


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=1, lease=100)


def test_a_permit_knows_what_it_is(semaphore: Semaphore) -> None:
    permit = Semaphore("api", limit=3, lease=100).acquire(weight=2)

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


def test_a_refreshed_lease_begins_anew(semaphore: Semaphore, redis: Redis) -> None:
    permit = semaphore.acquire()
    let_pass(redis, "api", 70)
    permit.valid_until -= 70

    permit.refresh()
    let_pass(redis, "api", 70)

    assert permit.remaining > 70
    assert semaphore.try_acquire() is None
    Semaphore("api", limit=1, lease=1_000).refresh(permit.id)  # with the lease of who asks
    [holder] = semaphore.holders()
    assert 900 < holder.remaining <= 1_000
    assert (semaphore.info().used, semaphore.info().granted) == (1, 1)


def test_a_permit_whose_lease_has_ended_is_not_refreshed_even_if_nobody_took_it(
    semaphore: Semaphore, redis: Redis
) -> None:
    """The book's refresh brings it back to life."""
    permit = semaphore.acquire()
    let_pass(redis, "api", 100)

    with pytest.raises(PermitLost):
        permit.refresh()

    assert permit.lost.is_set()
    assert permit.remaining == 0
    assert semaphore.info().used == 0
    with pytest.raises(PermitLost):
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

    kept = len(list(leases._starter.get()._kept))
    dropped = semaphore.acquire(auto_renewal=True)
    assert len(list(leases._starter.get()._kept)) == kept + 1
    del dropped
    gc.collect()
    assert eventually(lambda: len(list(leases._starter.get()._kept)) == kept)


def test_a_renewed_permit_learns_that_it_was_evicted(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_PART", 200)
    semaphore = Semaphore("api", limit=1, lease=10)
    permit = semaphore.acquire(auto_renewal=True)

    assert semaphore.evict(permit.id)

    assert permit.lost.wait(20)
    with pytest.raises(PermitLost):
        permit.release()


def test_a_late_grant_counts_from_before_its_request(semaphore: Semaphore, redis: Redis) -> None:
    """A reply that took long does not make the holder believe that it has longer than it has."""
    waiter = Waiter(semaphore)
    waiter.ask()
    let_pass(redis, "api", 70)

    permit = semaphore._take(waiter._wish)

    assert permit
    assert permit.remaining <= 30
