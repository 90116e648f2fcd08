"""Permits: how many there are at a time, and who is next."""

from __future__ import annotations

import pytest
from redis import Redis

from components.exceptions import (
    ForeignPermit,
    InvalidValue,
    PermitLost,
    PermitReleased,
    SemaphoreFull,
)
from components.services.semaphores import Semaphore
from tests.support.semaphores import Waiter, let_pass, queued, take


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=2, lease=10)


def test_there_are_as_many_permits_as_the_limit_says(semaphore: Semaphore) -> None:
    first, second = take(semaphore, 2)

    assert first.id != second.id
    assert semaphore.try_acquire() is None
    assert semaphore.info().used == 2


def test_a_wait_of_zero_returns_at_once(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore, 2)

    with pytest.raises(SemaphoreFull, match=r"'api' had no permit of weight 1 free within 0 s"):
        semaphore.acquire(wait=0)

    assert semaphore.info().waiting == 0


def test_a_permit_that_was_given_back_is_free(semaphore: Semaphore) -> None:
    first, _second = take(semaphore, 2)

    first.release()

    assert first.is_released
    assert semaphore.info().used == 1
    assert semaphore.try_acquire() is not None


def test_a_permit_is_given_back_by_its_id(semaphore: Semaphore) -> None:
    [permit] = take(semaphore)

    Semaphore("api", limit=7).release(permit.id)

    assert semaphore.info().used == 0


def test_semaphores_have_nothing_to_do_with_each_other(semaphore: Semaphore) -> None:
    take(semaphore, 2)

    assert Semaphore("ipa", limit=1).try_acquire() is not None
    assert semaphore.info().used == 2


@pytest.mark.parametrize("name", ["{a}", "}", "%7B", "ä ö", "x" * 500, "a:b", "\n"])
def test_any_text_is_a_name(redis: Redis, name: str) -> None:
    semaphore = Semaphore(name, limit=1)
    with semaphore.acquire() as permit:
        assert permit.name == name
        assert semaphore.try_acquire() is None

    assert semaphore.info().used == 0


def test_a_permit_is_held_until_its_lease_ends(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore, 2)
    let_pass(redis, "api", 9)
    assert semaphore.try_acquire() is None

    let_pass(redis, "api", 1)

    assert semaphore.info().used == 0
    take(semaphore, 2)
    assert semaphore.info().expired == 2


def test_asking_again_for_what_was_granted_grants_nothing_more(semaphore: Semaphore) -> None:
    waiter = Waiter(semaphore)

    assert waiter.ask() == "granted"
    said, left = waiter.ask_all()

    assert said == "granted"
    assert 9e6 < left <= 10e6
    assert semaphore.info().used == 1
    assert semaphore.info().granted == 1


def test_asking_again_does_not_prolong_the_lease(semaphore: Semaphore, redis: Redis) -> None:
    waiter = Waiter(semaphore)
    waiter.ask()
    let_pass(redis, "api", 4)

    assert waiter.ask_all()[1] <= 6e6


def test_a_repeated_request_keeps_its_place(semaphore: Semaphore, redis: Redis) -> None:
    permit, _other = take(semaphore, 2)
    first, second = Waiter(semaphore), Waiter(semaphore)
    assert [first.ask(), second.ask(), first.ask()] == ["wait"] * 3
    assert queued(redis, "api") == [first.id, second.id]

    permit.release()

    assert [second.ask(), first.ask(), second.ask()] == ["wait", "granted", "wait"]


def test_waiters_are_served_in_the_order_in_which_they_came(semaphore: Semaphore) -> None:
    permits = take(semaphore, 2)
    waiters = [Waiter(semaphore) for _ in range(5)]
    for waiter in waiters:
        waiter.ask()
    for permit in permits:
        permit.release()

    granted = [[waiter for waiter in waiters if waiter.ask() == "granted"] for _ in range(2)]

    assert granted == [waiters[:2], waiters[:2]]


def test_a_try_does_not_overtake_waiting_requests(semaphore: Semaphore) -> None:
    permit, _other = take(semaphore, 2)
    Waiter(semaphore).ask()

    permit.release()

    assert semaphore.info().used == 1
    assert semaphore.try_acquire() is None


def test_a_try_is_not_held_up_by_dead_requests(semaphore: Semaphore, redis: Redis) -> None:
    permit, _other = take(semaphore, 2)
    Waiter(semaphore).ask()
    permit.release()

    let_pass(redis, "api", 0.8)

    assert semaphore.try_acquire() is not None


def test_a_request_made_while_the_clock_stood_still_is_behind_earlier_ones(
    semaphore: Semaphore, redis: Redis
) -> None:
    """The server's clock may even have turned back: an hour here."""
    take(semaphore, 2)
    first = Waiter(semaphore)
    first.ask()
    let_pass(redis, "api", -3600)
    second = Waiter(semaphore)
    second.ask()

    assert queued(redis, "api") == [first.id, second.id]


def test_a_release_wakes_the_head_of_the_queue_and_nobody_else(semaphore: Semaphore, redis: Redis) -> None:
    permit, _other = take(semaphore, 2)
    waiters = [Waiter(semaphore) for _ in range(3)]
    for waiter in waiters:
        waiter.ask()

    permit.release()

    assert [waiter.is_woken(redis) for waiter in waiters] == [True, False, False]


def test_a_granted_request_wakes_the_next_while_permits_are_free(semaphore: Semaphore, redis: Redis) -> None:
    permits = take(semaphore, 2)
    first, second, third = waiters = [Waiter(semaphore) for _ in range(3)]
    for waiter in waiters:
        waiter.ask()
    for permit in permits:
        permit.release()
    assert first.is_woken(redis)

    assert first.ask() == "granted"
    assert second.is_woken(redis)
    assert second.ask() == "granted"
    assert not third.is_woken(redis)


def test_a_caller_that_finds_an_expired_lease_wakes_the_next(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore, 2)
    first = Waiter(semaphore)
    first.ask()
    for key in redis.keys("*holders*"):
        for member in redis.zrange(key, 0, -1):
            redis.zadd(key, {member: 1})

    assert semaphore.try_acquire() is None

    assert first.is_woken(redis)
    assert first.ask() == "granted"


def test_a_leaving_request_wakes_the_next(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore, 1)
    heavy, light = Waiter(semaphore, weight=2), Waiter(semaphore)
    assert [heavy.ask(), light.ask()] == ["wait", "wait"]

    heavy.leave()

    assert light.is_woken(redis)
    assert light.ask() == "granted"
    assert semaphore.info().given_up == 1


def test_a_leaving_request_returns_a_grant_that_it_never_learned_of(semaphore: Semaphore) -> None:
    waiter = Waiter(semaphore)
    waiter.ask()

    waiter.leave()

    assert semaphore.info().used == 0
    assert semaphore.info().given_up == 0


def test_a_request_that_arrives_after_its_sender_has_left_is_not_granted(semaphore: Semaphore) -> None:
    waiter = Waiter(semaphore)
    waiter.leave()

    assert waiter.ask() == "ended"
    assert semaphore.info().used == 0


@pytest.mark.parametrize("seconds", [0.5, 0.2])
def test_a_waiter_is_told_when_to_look_again(semaphore: Semaphore, redis: Redis, seconds: float) -> None:
    take(Semaphore("api", limit=2, lease=seconds))
    take(semaphore)

    said, left = Waiter(semaphore).ask_all()

    assert said == "wait"
    assert left <= seconds * 1e3


def test_a_waiter_looks_again_when_another_may_have_died(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore, 2)
    dead, alive = Waiter(semaphore), Waiter(semaphore)
    dead.ask()
    let_pass(redis, "api", 0.7)

    assert alive.ask_all()[1] <= 100


def test_a_heavy_permit_counts_as_much_as_it_weighs(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=5)
    heavy = semaphore.acquire(weight=3)
    assert semaphore.info().used == 3
    assert semaphore.try_acquire(weight=3) is None
    take(semaphore, 2)
    assert semaphore.try_acquire() is None

    heavy.release()

    assert semaphore.info().used == 2
    assert semaphore.try_acquire(weight=3) is not None


def test_the_weight_of_a_permit_that_has_expired_is_free(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=5, lease=10)
    semaphore.acquire(weight=5)
    let_pass(redis, "api", 10)

    assert semaphore.info().used == 0
    assert semaphore.try_acquire(weight=5) is not None


def test_light_permits_do_not_starve_a_heavy_one(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=3)
    [permit, *others] = take(semaphore, 3)
    heavy, light = Waiter(semaphore, weight=3), Waiter(semaphore)
    heavy.ask()
    light.ask()

    permit.release()
    assert [light.ask(), heavy.ask()] == ["wait", "wait"]
    assert semaphore.try_acquire() is None
    for other in others:
        other.release()

    assert [light.ask(), heavy.ask(), light.ask()] == ["wait", "granted", "wait"]


def test_a_second_release_reports_the_first(semaphore: Semaphore) -> None:
    permit, other = take(semaphore, 2)
    permit.release()

    with pytest.raises(PermitReleased, match="was released before"):
        permit.release()
    with pytest.raises(PermitReleased, match="was released before"):
        semaphore.release(permit.id)
    with pytest.raises(PermitReleased):
        semaphore.release(permit)

    assert semaphore.info().used == 1
    other.release()


def test_an_expired_lock_cannot_be_released(semaphore: Semaphore, redis: Redis) -> None:
    permit, other = take(semaphore, 2)
    let_pass(redis, "api", 10)

    with pytest.raises(PermitLost, match="its lease ran out"):
        permit.release()
    take(semaphore)
    with pytest.raises(PermitLost, match="its lease ran out"):
        semaphore.release(other.id)

    assert semaphore.info().used == 1


def test_a_permit_of_another_semaphore_is_foreign(semaphore: Semaphore) -> None:
    other = Semaphore("ipa", limit=1)
    permit = other.acquire()

    for act in (semaphore.release, semaphore.refresh):
        with pytest.raises(ForeignPermit, match="belongs to another semaphore, not to 'api'"):
            act(permit)
        with pytest.raises(ForeignPermit, match="belongs to another semaphore, not to 'api'"):
            act(permit.id)

    permit.ensure_held()
    assert other.info().used == 1


def test_a_weight_above_a_limit_that_was_set_meanwhile_is_refused_and_holds_nobody_up(
    redis: Redis,
) -> None:
    semaphore = Semaphore("api", limit=5)
    take(semaphore)
    semaphore.set_limit(3)

    with pytest.raises(InvalidValue, match=r"weight is 4, above the limit .* which is 3"):
        semaphore.acquire(weight=4)

    assert semaphore.info().waiting == 0
    assert semaphore.try_acquire(weight=2) is not None
