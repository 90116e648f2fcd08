"""Ticks of periodic tasks: each is taken once, whoever tries, and what was taken is remembered."""

from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.services.queues import Consumer, NewTask, TaskQueue, Ticks, keys
from components.services.queues.ticks import KEPT
from tests.support.queues import ECHO, claim, failed, hand_in, server_time, succeeded

NIGHTLY, HOURLY = "market.tasks.nightly 0 3 * * * (UTC)", "market.tasks.sweep every 1 hour"
MONDAY = datetime(2026, 1, 5, 3, tzinfo=UTC)
TUESDAY, WEDNESDAY = MONDAY + timedelta(days=1), MONDAY + timedelta(days=2)
HOUR = timedelta(hours=1)


@pytest.fixture
def ticks(redis: Redis) -> Ticks:
    return Ticks()


def ticking(*instants: datetime, name: str = NIGHTLY, queue: str = "default") -> list[bool]:
    """Push a task for each tick; which of them were stored."""
    new = [NewTask(name=ECHO, at=at, queue=queue, tick=(name, at)) for at in instants]
    return [info is not None for info in TaskQueue().push_many(new)]


@pytest.mark.parametrize(("year", "is_taken"), [(2030, False), (2026, True)])
def test_a_last_tick_that_is_later_than_any_can_be_counts_as_not_taken(
    ticks: Ticks, caplog: pytest.LogCaptureFixture, year: int, is_taken: bool
) -> None:
    ticking(TUESDAY.replace(year=year))
    new = NewTask(name=ECHO, at=MONDAY, tick=(NIGHTLY, MONDAY), tick_limit=TUESDAY)

    stored = TaskQueue().push_many([new, new])

    assert [info is not None for info in stored] == [not is_taken, False]
    assert ticks.last([NIGHTLY]) == {NIGHTLY: TUESDAY if is_taken else MONDAY}
    assert [NIGHTLY in record.getMessage() for record in caplog.records] == [True] * (not is_taken)


def test_a_name_that_is_declared_begins_now_by_the_clock_of_redis_and_not_again(ticks: Ticks) -> None:
    before = server_time()
    began, last = ticks.declare([NIGHTLY])
    ticking(WEDNESDAY, name=HOURLY)

    assert last == {NIGHTLY: began}
    assert before <= began <= server_time()
    assert ticking(began) == [False]
    assert ticks.declare([HOURLY, NIGHTLY])[1] == {HOURLY: WEDNESDAY, NIGHTLY: began}


def test_names_that_nobody_has_declared_for_two_years_are_forgotten_wholly(ticks: Ticks) -> None:
    now = server_time()
    ticks.pause(NIGHTLY)
    for name, length in ((NIGHTLY, KEPT + HOUR), (HOURLY, KEPT + HOUR), ("younger", KEPT - HOUR)):
        ticking(now - length, name=name)

    ticks.declare([HOURLY])

    assert ticks.last([NIGHTLY, HOURLY, "younger"]) == {
        HOURLY: now - KEPT - HOUR,
        "younger": now - KEPT + HOUR,
    }
    assert ticks.paused() == frozenset()
    assert ticks.outcomes([NIGHTLY]) == {NIGHTLY: []}


def test_a_skipped_tick_is_taken_and_so_are_those_before_it(ticks: Ticks) -> None:
    assert ticks.skip(NIGHTLY, TUESDAY)

    assert ticking(MONDAY, TUESDAY, WEDNESDAY) == [False, False, True]
    assert [ticks.skip(NIGHTLY, at) for at in (TUESDAY, WEDNESDAY)] == [False, False]
    assert ticks.last([NIGHTLY]) == {NIGHTLY: WEDNESDAY}


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
    first, info = runs[oldest[0]], TaskQueue().get(oldest[0])
    assert (first.started_at, first.finished_at) == (info.last_attempted_at, info.finished_at)
    assert [runs[task_id].seconds is None for task_id in oldest] == [False] * 2 + [True] * 5
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
