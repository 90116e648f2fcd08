"""Ticks of periodic tasks: each is taken once, whoever tries, and what was taken is remembered."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.services.queues import Consumer, NewTask, TaskQueue, Ticks, keys
from components.services.queues.facts import LAST_INSTANT
from components.services.queues.ticks import KEPT
from components.testing import redis_at
from tests.support.queues import ECHO, claim, failed, hand_in, places, server_time, succeeded

NIGHTLY, HOURLY = "market.tasks.nightly 0 3 * * * (UTC)", "market.tasks.sweep every 1 hour"
MONDAY = datetime(2026, 1, 5, 3, tzinfo=UTC)
TUESDAY, WEDNESDAY = MONDAY + timedelta(days=1), MONDAY + timedelta(days=2)


@pytest.fixture
def ticks(redis: Redis) -> Ticks:
    return Ticks()


def ticking(*instants: datetime, name: str = NIGHTLY, queue: str = "default") -> list[bool]:
    """Push a task for each tick; which of them were stored."""
    new = [NewTask(name=ECHO, at=at, queue=queue, tick=(name, at)) for at in instants]
    return [info is not None for info in TaskQueue().push_many(new)]


# --- Pushing ---------------------------------------------------------------------------------------


def test_a_push_beside_a_taken_tick_is_stored(ticks: Ticks) -> None:
    ticking(MONDAY)

    first, taken, last = TaskQueue().push_many(
        [NewTask(name=ECHO), NewTask(name=ECHO, tick=(NIGHTLY, MONDAY)), NewTask(name=ECHO, queue="mail")]
    )

    assert first is not None
    assert taken is None
    assert last is not None
    assert (first.id in places()["ready"], places("mail")) == (True, {"ready": [last.id]})


def test_a_tick_is_remembered_to_the_microsecond(ticks: Ticks) -> None:
    exact = MONDAY + timedelta(microseconds=123_457)

    assert ticking(exact) == [True]
    assert ticks.last([NIGHTLY]) == {NIGHTLY: exact}
    assert ticking(exact, exact + timedelta(microseconds=1)) == [False, True]


def test_a_last_tick_that_is_later_than_any_can_be_counts_as_not_taken(
    ticks: Ticks, caplog: pytest.LogCaptureFixture
) -> None:
    ticking(datetime(2030, 1, 1, tzinfo=UTC))
    new = NewTask(name=ECHO, at=MONDAY, tick=(NIGHTLY, MONDAY), tick_limit=TUESDAY)

    with caplog.at_level(logging.WARNING):
        stored = TaskQueue().push_many([new, new])

    assert [info is not None for info in stored] == [True, False]
    assert ticks.last([NIGHTLY]) == {NIGHTLY: MONDAY}
    [record] = caplog.records
    assert f"The last tick of {NIGHTLY} is 2030-01-01 00:00:00+00:00" in record.getMessage()


def test_a_last_tick_up_to_the_limit_is_taken(ticks: Ticks, caplog: pytest.LogCaptureFixture) -> None:
    ticking(TUESDAY)
    new = NewTask(name=ECHO, at=MONDAY, tick=(NIGHTLY, MONDAY), tick_limit=TUESDAY)

    assert TaskQueue().push_many([new]) == [None]
    assert caplog.records == []


# --- Declaring, looking and skipping ---------------------------------------------------------------


def test_a_name_that_is_declared_begins_now_by_the_clock_of_redis(ticks: Ticks) -> None:
    before = server_time()
    now, last = ticks.declare([NIGHTLY, HOURLY])

    assert last == {NIGHTLY: now, HOURLY: now}
    assert before <= now <= server_time()
    assert ticking(now) == [False]


def test_declaring_again_changes_nothing(ticks: Ticks) -> None:
    began, _last = ticks.declare([NIGHTLY])
    ticking(WEDNESDAY, name=HOURLY)

    now, last = ticks.declare([HOURLY, NIGHTLY])

    assert now > began
    assert last == {HOURLY: WEDNESDAY, NIGHTLY: began}


def test_a_last_tick_later_than_its_limit_becomes_now_when_it_is_declared(ticks: Ticks) -> None:
    future = datetime(2130, 1, 1, tzinfo=UTC)
    ticking(future)
    ticking(future, name=HOURLY)
    limit = server_time() + timedelta(days=1)

    now, last = ticks.declare([NIGHTLY, HOURLY], {NIGHTLY: limit, HOURLY: future})

    assert last == {NIGHTLY: now, HOURLY: future}
    assert ticks.declare([NIGHTLY], {NIGHTLY: limit})[1] == {NIGHTLY: now}


def test_names_that_nobody_has_declared_for_two_years_are_forgotten(ticks: Ticks, redis: Redis) -> None:
    now = server_time()
    ticking(now - KEPT - timedelta(hours=1))
    ticking(now - KEPT - timedelta(hours=1), name=HOURLY)
    ticking(now - KEPT + timedelta(hours=1), name="younger")

    ticks.declare([HOURLY])

    assert ticks.last([NIGHTLY, HOURLY, "younger"]).keys() == {HOURLY, "younger"}
    assert ticks.last([HOURLY])[HOURLY] == now - KEPT - timedelta(hours=1)


@pytest.mark.parametrize("score", ["inf", "1e300"])
def test_a_malformed_instant_is_read_as_the_latest(ticks: Ticks, redis: Redis, score: str) -> None:
    redis.zadd(keys.BackendKeys("default").periodic, {NIGHTLY: score})

    assert ticks.last([NIGHTLY]) == ticks.declare([NIGHTLY])[1] == {NIGHTLY: LAST_INSTANT}


def test_a_skipped_tick_is_taken_and_so_are_those_before_it(ticks: Ticks) -> None:
    assert ticks.skip(NIGHTLY, TUESDAY)

    assert ticking(MONDAY, TUESDAY, WEDNESDAY) == [False, False, True]


def test_a_chunk_that_was_taken_cannot_be_skipped(ticks: Ticks) -> None:
    ticking(TUESDAY)

    assert not ticks.skip(NIGHTLY, TUESDAY)
    assert not ticks.skip(NIGHTLY, MONDAY)
    assert ticks.last([NIGHTLY]) == {NIGHTLY: TUESDAY}


def test_without_redis_everything_says_so(redis: Redis) -> None:
    ticks = Ticks()
    with redis_at("unix:///nowhere/at-all.sock"):
        for call in (
            lambda: ticks.declare([NIGHTLY]),
            lambda: ticks.last([NIGHTLY]),
            lambda: ticks.skip(NIGHTLY, MONDAY),
        ):
            with pytest.raises(RedisUnavailable):
                call()


# --- Pausing, and what became of the last ticks ------------------------------------------------------


def test_the_ticks_of_a_paused_name_are_taken_and_nothing_is_stored(ticks: Ticks) -> None:
    ticks.pause(NIGHTLY)
    ticks.pause(NIGHTLY)

    assert ticking(MONDAY) == [False]
    assert ticking(MONDAY, name=HOURLY) == [True]
    assert ticks.paused() == {NIGHTLY}
    assert ticks.last([NIGHTLY]) == {NIGHTLY: MONDAY}

    ticks.resume(NIGHTLY)
    ticks.resume(NIGHTLY)

    assert ticks.paused() == frozenset()
    assert ticking(MONDAY, TUESDAY) == [False, True]


def test_what_became_of_the_last_ticks_is_told(ticks: Ticks, redis: Redis) -> None:
    ticking(*(MONDAY + timedelta(days=day) for day in range(7)))
    ids = [run.id for run in ticks.outcomes([NIGHTLY])[NIGHTLY]]
    consumer = Consumer()
    claimed = {task.id: task for task in claim(consumer, 5)}
    oldest = ids[::-1]
    hand_in(consumer, succeeded(claimed[oldest[0]], {"text": "a\nb"}), failed(claimed[oldest[1]]))
    TaskQueue().cancel("default", [oldest[5]])
    hand_in(consumer, succeeded(claimed[oldest[2]]))
    redis.delete(keys.BackendKeys("default").result(oldest[2]))

    runs = {run.id: run for run in ticks.outcomes([NIGHTLY])[NIGHTLY]}

    assert [runs[task_id].state for task_id in oldest] == [
        "successful", "failed", "gone", "running", "running", "cancelled", "waiting",
    ]  # fmt: skip
    done = found = runs[oldest[0]]
    info = TaskQueue().get(done.id)
    assert info
    assert (found.started_at, found.finished_at) == (info.last_attempted_at, info.finished_at)
    assert found.seconds is not None
    assert runs[oldest[1]].seconds is not None
    assert [runs[task_id].seconds for task_id in oldest[2:]] == [None] * 5
    assert ticks.outcomes([HOURLY]) == {HOURLY: []}
    assert ticks.outcomes([]) == {}


def test_the_last_twelve_are_kept(ticks: Ticks) -> None:
    ids = []
    for day in range(20):
        new = NewTask(name=ECHO, tick=(NIGHTLY, MONDAY + timedelta(days=day)))
        [stored] = TaskQueue().push_many([new])
        assert stored
        ids.append(stored.id)
        assert TaskQueue().push_many([new]) == [None]  # as another worker does

    assert [run.id for run in ticks.outcomes([NIGHTLY])[NIGHTLY]] == ids[:7:-1]


def test_a_result_that_cannot_be_read_is_successful(ticks: Ticks, redis: Redis) -> None:
    ticking(MONDAY)
    [run] = ticks.outcomes([NIGHTLY])[NIGHTLY]
    redis.set(keys.BackendKeys("default").result(run.id), "nonsense")

    [found] = ticks.outcomes([NIGHTLY])[NIGHTLY]

    assert (found.state, found.seconds) == ("successful", None)


def test_a_name_that_is_forgotten_is_forgotten_wholly(ticks: Ticks, redis: Redis) -> None:
    ticking(MONDAY)
    ticks.pause(NIGHTLY)
    redis.zadd(keys.BackendKeys("default").periodic, {NIGHTLY: 1})

    ticks.declare([HOURLY])

    assert ticks.paused() == frozenset()
    assert ticks.outcomes([NIGHTLY]) == {NIGHTLY: []}
