"""Permits: how many there are at a time, and who is next. What follows from any order of calls is in the model."""

from __future__ import annotations

import pytest
from redis import Redis

from components.exceptions import ForeignPermit, InvalidValue, PermitLost, PermitReleased, SemaphoreFull
from components.services.semaphores import Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.full import full
from tests.support.semaphores import Waiter, let_pass, queued, take

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


def test_a_permit_is_held_until_its_lease_ends(semaphore: Semaphore, redis: Redis) -> None:
    heavy = semaphore.acquire(weight=2)
    let_pass(redis, "api", 60)
    assert semaphore.try_acquire() is None
    assert not redis.zscore(SemaphoreKeys("api").holders, "")

    let_pass(redis, "api", 40)

    assert semaphore.info().used == 0
    take(semaphore, 2)
    assert semaphore.info().expired == 1
    for act in (heavy.release, lambda: semaphore.release(heavy.id), heavy.refresh):
        with pytest.raises(PermitLost):
            act()
    assert semaphore.info().used == 2


def test_asking_again_grants_nothing_more_and_does_not_prolong_the_lease(
    semaphore: Semaphore, redis: Redis
) -> None:
    waiter = Waiter(semaphore)
    assert waiter.ask_all() == ("granted", 100_000_000)
    let_pass(redis, "api", 40)

    said, left = waiter.ask_all()

    assert said == "granted"
    assert 30e6 < left <= 60e6
    assert (semaphore.info().used, semaphore.info().granted) == (1, 1)


def test_waiters_are_served_in_the_order_in_which_they_came(semaphore: Semaphore, redis: Redis) -> None:
    permits = take(semaphore, 2)
    waiters = [Waiter(semaphore) for _ in range(5)]
    assert [waiter.ask() for waiter in [*waiters, waiters[0]]] == ["wait"] * 6
    assert queued(redis, "api") == [waiter.id for waiter in waiters]
    permits[0].release()
    assert [waiter.is_woken(redis, keep=True) for waiter in waiters] == [True, False, False, False, False]
    assert 0 < redis.pttl(f"{SemaphoreKeys('api').wake}:{waiters[0].id}") <= 2_000
    permits[1].release()
    assert semaphore.try_acquire() is None

    granted = [[waiter for waiter in waiters if waiter.ask() == "granted"] for _ in range(2)]

    assert granted == [waiters[:2], waiters[:2]]


def test_a_request_made_while_the_clock_turned_back_is_behind_earlier_ones(
    semaphore: Semaphore, redis: Redis
) -> None:
    take(semaphore, 2)
    first, second = Waiter(semaphore), Waiter(semaphore)
    first.ask()
    let_pass(redis, "api", -3600)
    second.ask()

    assert queued(redis, "api") == [first.id, second.id]


def test_a_leaving_request_wakes_the_next(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore, 1)
    heavy, light = Waiter(semaphore, weight=2), Waiter(semaphore)
    assert [heavy.ask(), light.ask()] == ["wait", "wait"]

    heavy.leave()

    assert light.is_woken(redis)
    assert light.ask() == "granted"
    assert semaphore.info().given_up == 1


@pytest.mark.parametrize("how", ["release", "evict", "leave", "set_limit"])
def test_who_is_dead_is_passed_over(semaphore: Semaphore, redis: Redis, how: str) -> None:
    held, _other = take(semaphore, 2)
    dead, alive, leaves = Waiter(semaphore), Waiter(semaphore), Waiter(semaphore)
    for waiter in (dead, alive, leaves):
        waiter.ask()
    redis.zadd(SemaphoreKeys("api").beats, {dead.id: 1, alive.id: 9e15, leaves.id: 9e15})

    match how:
        case "release":
            held.release()
        case "evict":
            semaphore.evict(held.id)
        case "leave":
            leaves.leave()
        case "set_limit":
            semaphore.set_limit(3)

    assert alive.is_woken(redis)
    assert not dead.is_woken(redis)


def test_a_leaving_request_returns_a_grant_that_it_never_learned_of(semaphore: Semaphore) -> None:
    waiter, late = Waiter(semaphore), Waiter(semaphore)
    waiter.ask()
    waiter.leave()
    late.leave()

    assert late.ask() == waiter.ask() == "ended"
    assert (semaphore.info().used, semaphore.info().given_up) == (0, 0)


def test_a_waiter_is_told_when_to_look_again(semaphore: Semaphore, redis: Redis) -> None:
    take(Semaphore("api", limit=2, lease=20))
    take(semaphore)

    said, left = Waiter(semaphore).ask_all()
    assert said == "wait"
    assert 1_000 < left <= 20_000
    redis.zadd(SemaphoreKeys("api").holders, {redis.zrange(SemaphoreKeys("api").holders, 0, 0)[0]: 9e15})
    let_pass(redis, "api", 59.7)  # of the minute for which the other counts as alive
    assert Waiter(semaphore).ask_all()[1] <= 300


def test_a_second_release_reports_the_first(semaphore: Semaphore, redis: Redis) -> None:
    permit, _other = take(semaphore, 2)
    Semaphore("api", limit=7).release(permit.id)

    for act in (permit.release, lambda: semaphore.release(permit.id), lambda: semaphore.refresh(permit.id)):
        with pytest.raises(PermitReleased):
            act()
    let_pass(redis, "api", 31)  # half a minute later it is unknown
    with pytest.raises(PermitLost):
        semaphore.release(permit.id)


def test_a_permit_of_another_semaphore_is_foreign(semaphore: Semaphore) -> None:
    permit = Semaphore("ipa", limit=1).acquire()

    for act in (semaphore.release, semaphore.refresh, semaphore.evict, semaphore.holder):
        with pytest.raises(ForeignPermit):
            act(permit.id)
    with pytest.raises(ForeignPermit):
        semaphore.release(permit)

    permit.refresh()


def test_a_weight_above_a_limit_that_was_set_meanwhile_is_refused_and_holds_nobody_up(
    redis: Redis,
) -> None:
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


def test_everything_expires_but_a_limit_that_was_set_by_hand(redis: Redis) -> None:
    day, keys = 86_400_000, SemaphoreKeys("api")
    semaphore = Semaphore("api", limit=3)
    take(semaphore, weight=2)
    take(semaphore)
    waiter = Waiter(semaphore)
    waiter.ask()
    for key in (keys.queue, keys.beats):
        assert 60_000 < redis.pttl(key) <= 65_000
    assert 31 * day < redis.pttl(keys.names) <= 32 * day
    waiter.leave()
    assert semaphore.evict(semaphore.holders()[1].id)
    semaphore.acquire(wait=0).release()

    assert len(redis.keys("*")) > 5
    assert all(redis.pttl(key) > 0 for key in redis.keys("*"))
    assert all(
        29 * day < redis.pttl(key) <= 30 * day for key in (keys.holders, keys.since, keys.heavy, keys.stats)
    )
    assert all(0 < redis.pttl(key) <= 30_000 for key in redis.keys(f"{keys.ended}:*"))

    semaphore.set_limit(3)
    take(semaphore)
    assert redis.pttl(keys.names) == redis.pttl(keys.limits) == -1
    semaphore.reset_limit()
    redis.zadd(keys.names, {"api": 1})
    let_pass(redis, "api", 31)
    take(semaphore)
    assert redis.pttl(keys.names) > 30 * day
    assert (redis.zcard(keys.holders), redis.zcard(keys.since), redis.zcard(keys.heavy)) == (1, 1, 0)


def test_on_a_full_server_permits_are_taken_refreshed_and_given_back(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=2)
    first, second = take(semaphore, 2)
    waiter = Waiter(semaphore)
    waiter.ask()

    with full(redis):
        first.refresh()
        assert first.renew()
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
