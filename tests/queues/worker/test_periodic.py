"""Ticker and the workers that have one: each tick once, missed ones by their policy, no cost without any."""

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.compat import task_enqueued
from components.services.queues import (
    MissedPolicy,
    PeriodicTask,
    Schedule,
    TaskInfo,
    TaskQueue,
    Ticks,
    cron,
    every,
    keys,
    periodic,
)
from components.services.queues import periodic_tasks as declarations
from components.services.queues.facts import to_us
from components.services.queues.periodic_tasks import overview
from components.services.queues.worker.periodic import MOST, RETRY, Ticker
from components.services.queues.worker.runs import ServerClock
from components.services.queues.worker.worker import Poller, Worker
from components.testing import redis_at
from tests import tasks
from tests.fixtures.worker import MakeWorker, counts, current_backend, reaches
from tests.queues.worker.test_execution import listening
from tests.support.monitoring import sent_to
from tests.support.queues import options, server_time
from tests.support.waiting import eventually

MINUTE, HOUR, DAY = (timedelta(seconds=length) for length in (60, 3_600, 86_400))
MICROSECOND = timedelta(microseconds=1)
Start = Callable[[Worker], Worker]

pytestmark = pytest.mark.usefixtures("backend", "nothing_declared")


def declare(
    schedule: Schedule | None = None,
    *,
    value: Any = "tick",
    missed: MissedPolicy = "once",
    task: Any = tasks.note,
) -> PeriodicTask:
    """By default: make a note each day."""
    known = set(declarations._declared)
    periodic(schedule or every(days=1), missed=missed, args=[value])(task)
    [name] = declarations._declared.keys() - known
    return declarations._declared[name]


def was_last(redis: Redis, entry: PeriodicTask, at: datetime) -> None:
    redis.zadd(keys.BackendKeys("default").periodic, {entry.name: to_us(at)})


def of_a_library(text: str) -> None: ...


of_a_library.__module__ = "library.tasks"  # which no worker knows


class Hand:
    """A Ticker and its clock, which can be put forward."""

    def __init__(self) -> None:
        self.clock = ServerClock()
        self.ticker = Ticker(current_backend(), self.clock)

    def tick(self, later: timedelta = timedelta()) -> float:
        if later:
            self.clock.set(self.clock.now() + later)
        return self.ticker.tick()


def stored(queue: str = "default") -> list[TaskInfo]:
    """The tasks of ticks, in the order in which they will run: what is due for Redis too, then what will be."""
    return [info for state in ("ready", "delayed") for info in TaskQueue().tasks(queue, state, limit=10_000)]


def ticks() -> list[datetime | None]:
    return [info.run_after for info in stored()]


def full(instant: datetime, interval: timedelta) -> datetime:
    """The last multiple of *interval* that is not later."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return instant - (instant - epoch) % interval


def test_a_tick_costs_one_command_and_none_is_sent_between_ticks(redis_server: EmbeddedServer) -> None:
    with sent_to(redis_server) as without:
        assert [Hand().tick() for _turn in range(2)] == [math.inf] * 2
    declare()
    hand = Hand()
    hand.tick()
    with sent_to(redis_server) as between:
        hand.tick()
        hand.tick()
    hand.tick(DAY)
    with sent_to(redis_server) as at_a_tick:
        hand.tick(DAY)
        hand.tick()

    assert without == between == []
    assert at_a_tick == ["EVALSHA"]


@pytest.mark.parametrize("missed", ["once", "skip", "all"])
@pytest.mark.parametrize("schedule", [every(seconds=30), cron("0 3 * * *", tz="UTC")], ids=str)
def test_a_worker_that_starts_after_a_jump_of_the_clock_ticks_as_if_there_had_been_none(
    redis: Redis, caplog: pytest.LogCaptureFixture, schedule: Schedule, missed: MissedPolicy
) -> None:
    entry = declare(schedule, missed=missed)
    was_last(redis, entry, server_time() + 1_000 * DAY)
    hand = Hand()

    pause = hand.tick()
    hand.tick(timedelta(seconds=pause))

    assert ticks() == [schedule.next_after(hand.clock.now() - timedelta(seconds=pause))]
    assert entry.name in caplog.text
    assert Ticks().last([entry.name])[entry.name] == ticks()[0]


def test_a_last_tick_two_periods_ahead_counts_as_not_taken(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    near, far = declare(value="near"), declare(value="far")
    today = full(server_time(), DAY)
    was_last(redis, near, today + DAY)
    was_last(redis, far, today + 2 * DAY)
    hand = Hand()
    hand.tick()

    hand.tick(DAY)

    assert [info.args for info in stored()] == [["far"]]
    assert far.name in caplog.text
    assert near.name not in caplog.text


@pytest.mark.parametrize(
    ("missed", "days", "late", "run", "reported"),
    [
        ("once", 6, MINUTE, [0], 1),
        ("once", 6, HOUR, [0], 1),
        ("all", 6, HOUR, [5, 4, 3, 2, 1, 0], 1),
        ("skip", 6, MINUTE, [0], 1),
        ("skip", 6, MINUTE + MICROSECOND, [], 1),
        ("once", 1, MINUTE, [0], 0),
        ("once", 1, MINUTE + MICROSECOND, [0], 1),
    ],
)
def test_missed_ticks_run_by_the_policy_and_are_reported_once(
    caplog: pytest.LogCaptureFixture,
    missed: MissedPolicy,
    days: int,
    late: timedelta,
    run: list[int],
    reported: int,
) -> None:
    entry = declare(missed=missed)
    hands = [Hand(), Hand()]
    for hand in hands:
        hand.tick()
        latest = full(hand.clock.now(), DAY) + days * DAY
        hand.clock.now = lambda: latest + late  # type: ignore[method-assign]  # noqa: B023

    for hand in hands:
        hand.tick()

    assert ticks() == [latest - number * DAY for number in run]
    assert Ticks().last([entry.name])[entry.name] == latest
    assert [entry.name in record.getMessage() for record in caplog.records] == [True] * reported
    hand.clock.now = lambda: latest + DAY  # type: ignore[method-assign]
    hand.tick()
    assert ticks()[-1] == latest + DAY


def test_with_all_so_many_at_most(redis: Redis) -> None:
    entry = declare(every(seconds=1), missed="all")
    was_last(redis, entry, server_time() - DAY)

    Hand().tick()

    found = ticks()
    assert len(found) == MOST
    assert found == sorted(found, key=lambda tick: tick or datetime.max)
    assert found[-1] == Ticks().last([entry.name])[entry.name]


@pytest.mark.parametrize("missed", ["once", "all"])
def test_a_worker_that_was_away_pushes_nothing_twice(
    redis_server: EmbeddedServer, missed: MissedPolicy
) -> None:
    declare(missed=missed)
    away, present = Hand(), Hand()
    away.tick()
    present.tick()
    for _turn in range(3):
        present.tick(DAY)
    overview()  # Redis has the script from now on
    with sent_to(redis_server) as commands:
        away.tick(3 * DAY)

    assert commands == ["EVALSHA"]
    assert len(stored()) == 3


def test_an_entry_that_cannot_be_pushed_is_reported_once_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong, _good = declare(value="x" * 200), declare(value="y")
    unknown = declare(task=replace(tasks.note, func=of_a_library))
    hand = Hand()
    with options(max_body=100), caplog.at_level(logging.ERROR):
        hand.tick()
        hand.tick(full(server_time(), DAY) + DAY + HOUR - server_time())  # no midnight within the retries
        pause = hand.tick(RETRY)

    assert [info.args for info in stored()] == [["y"]]
    assert 0 < pause <= RETRY.total_seconds()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert all(any(entry.name in text for text in said) for entry in (wrong, unknown))
    hand.tick(RETRY)
    assert sorted(str(info.args[0])[0] for info in stored()) == ["x", "y"]


def test_while_redis_is_away_the_ticker_says_so_and_its_tick_is_not_lost() -> None:
    declare()
    hand = Hand()
    hand.tick()
    with redis_at("unix:///nowhere/at-all.sock"), pytest.raises(RedisUnavailable):
        hand.tick(DAY)

    hand.tick()

    assert len(stored()) == 1


def test_a_worker_runs_what_is_due_before_its_burst_ends(redis: Redis, make_worker: MakeWorker) -> None:
    was_last(redis, declare(value="due"), server_time() - DAY)

    assert make_worker(burst=True).run() == 0

    assert tasks.notes == ["due"]


def test_a_worker_that_is_full_still_ticks(make_worker: MakeWorker, start: Start, patient: None) -> None:
    declare(every(seconds=1), task=tasks.echo)
    TaskQueue().push("tests.tasks.wait", priority=9)
    start(make_worker(concurrency=1))
    assert reaches(running=1)

    assert eventually(lambda: "ready" in counts())
    assert counts()["running"] == 1


def test_a_poller_ticks(start: Start, patient: None) -> None:
    declare(every(seconds=1))
    start(Poller())

    assert eventually(lambda: counts().get("ready", 0) >= 1)


def test_the_overview_tells_the_last_and_the_next_tick(redis: Redis) -> None:
    entry, fresh, jumped, unseen = (declare(value=value) for value in "abcd")
    latest = full(server_time(), DAY)
    was_last(redis, entry, latest)
    was_last(redis, fresh, latest + timedelta(seconds=1))  # became known then
    was_last(redis, jumped, latest + 1_000 * DAY)

    found = {info.periodic.name: (info.last_at, info.next_at) for info in overview()}

    assert found == {
        entry.name: (latest, latest + DAY),
        fresh.name: (None, latest + DAY),
        jumped.name: (None, latest + DAY),
        unseen.name: (None, None),
    }


def test_a_tick_is_a_call_of_the_task_as_it_is_declared_and_the_next_tick_is_the_first() -> None:
    entry = declare(value="x", missed="all", task=tasks.echo.using(queue_name="mail", priority=7))
    hand = Hand()
    hand.tick()
    assert stored("mail") == []
    with listening(task_enqueued) as told:
        hand.tick(DAY)

    [info] = stored("mail")
    assert (info.name, info.args, info.kwargs, info.priority) == ("tests.tasks.echo", ["x"], {}, 7)
    assert info.run_after == Ticks().last([entry.name])[entry.name] == full(hand.clock.now(), DAY)
    assert [(result.id, result.task.run_after) for _sender, result in told] == [(info.id, info.run_after)]
