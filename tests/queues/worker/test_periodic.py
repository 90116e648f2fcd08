"""
Ticker and the workers that have one: each tick once, missed ticks by their policy, and no cost without any.

Time passes by data: a last tick is set back, or a worker's clock forward.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.compat import TaskResult, task_enqueued
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
from components.services.queues.backend import RedisBackend
from components.services.queues.facts import to_us
from components.services.queues.periodic_tasks import overview
from components.services.queues.worker.periodic import MOST, RETRY, Ticker
from components.services.queues.worker.poller import Poller
from components.services.queues.worker.runs import ServerClock
from components.services.queues.worker.worker import Worker
from components.testing import redis_at
from tests import tasks
from tests.fixtures.worker import MakeWorker, counts, current_backend, reaches
from tests.support.monitoring import sent_to
from tests.support.queues import options, server_time
from tests.support.waiting import eventually

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=length) for length in (1, 60, 3_600, 86_400))
MICROSECOND = timedelta(microseconds=1)
Start = Callable[[Worker], Worker]


@pytest.fixture(autouse=True)
def nothing_declared(monkeypatch: pytest.MonkeyPatch, backend: RedisBackend) -> None:
    declarations.declared()  # what the demo site declares is declared before, and put aside
    monkeypatch.setattr(declarations, "_declared", {})


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


# --- What it costs ---------------------------------------------------------------------------------


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


# --- Ticking ---------------------------------------------------------------------------------------


def test_a_new_periodic_task_begins_with_its_next_tick() -> None:
    declare(missed="all")
    hand = Hand()
    hand.tick()
    assert stored() == []

    hand.tick(DAY)

    assert ticks() == [full(hand.clock.now(), DAY)]


def test_a_tick_is_a_call_of_the_task_as_it_is_declared() -> None:
    seen: list[TaskResult[..., Any]] = []

    def remember(task_result: TaskResult[..., Any], **kwargs: Any) -> None:
        seen.append(task_result)

    entry = declare(value="x", task=tasks.echo.using(queue_name="mail", priority=7))
    hand = Hand()
    hand.tick()
    task_enqueued.connect(remember)
    try:
        hand.tick(DAY)
    finally:
        task_enqueued.disconnect(remember)

    [info] = stored("mail")
    assert (info.name, info.args, info.kwargs, info.priority) == ("tests.tasks.echo", ["x"], {}, 7)
    assert info.run_after == Ticks().last([entry.name])[entry.name]
    assert [(result.id, result.task.run_after) for result in seen] == [(info.id, info.run_after)]


# --- A clock that jumped ----------------------------------------------------------------------------


def said(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records)


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
    assert entry.name in said(caplog)
    assert Ticks().last([entry.name])[entry.name] == ticks()[0]


def test_a_last_tick_two_periods_ahead_counts_as_not_taken_and_one_period_ahead_as_taken(
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
    assert far.name in said(caplog)
    assert near.name not in said(caplog)


@pytest.mark.parametrize("missed", ["once", "all"])
def test_a_worker_that_is_behind_does_not_wait_for_a_date_that_a_jump_has_left(
    redis: Redis, missed: MissedPolicy
) -> None:
    entry = declare(missed=missed)
    hand = Hand()
    hand.tick()
    was_last(redis, entry, server_time() + 1_000 * DAY)  # another worker's

    hand.tick(3 * DAY)

    assert len(stored()) == (1 if missed == "once" else 3)


def test_a_worker_that_saw_the_jump_begins_anew_when_the_clock_is_back(redis: Redis) -> None:
    declare()
    hand = Hand()
    hand.tick()
    before = hand.clock.now()
    hand.tick(1_000 * DAY)
    assert len(stored()) == 1

    hand.clock.set(before)
    pause = hand.tick()
    hand.tick(timedelta(seconds=pause))

    assert len(stored()) == 2
    assert full(before, DAY) + DAY in ticks()


# --- Missed ticks ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missed", "late", "run"),
    [
        ("once", MINUTE, [0]),
        ("once", HOUR, [0]),
        ("all", HOUR, [5, 4, 3, 2, 1, 0]),
        ("skip", MINUTE, [0]),
        ("skip", MINUTE + MICROSECOND, []),
        ("skip", HOUR, []),
    ],
)
def test_missed_ticks_run_by_the_policy_and_are_reported_once(
    redis: Redis, caplog: pytest.LogCaptureFixture, missed: MissedPolicy, late: timedelta, run: list[int]
) -> None:
    entry = declare(missed=missed)
    hands = [Hand(), Hand()]
    for hand in hands:
        hand.tick()
        latest = full(hand.clock.now(), DAY) + 6 * DAY
        hand.clock.now = lambda: latest + late  # type: ignore[method-assign]  # noqa: B023

    with caplog.at_level(logging.WARNING, "components.services.queues.worker.periodic"):
        for hand in hands:
            hand.tick()

    assert ticks() == [latest - number * DAY for number in run]
    assert Ticks().last([entry.name])[entry.name] == latest
    [record] = caplog.records
    assert entry.name in record.getMessage()
    hand.clock.now = lambda: latest + DAY  # type: ignore[method-assign]
    hand.tick()
    assert ticks()[-1] == latest + DAY


@pytest.mark.parametrize(("late", "reported"), [(MINUTE, 0), (MINUTE + MICROSECOND, 1)])
def test_a_single_tick_is_reported_if_it_comes_late(
    caplog: pytest.LogCaptureFixture, late: timedelta, reported: int
) -> None:
    declare()
    hand = Hand()
    hand.tick()
    at = full(hand.clock.now(), DAY) + DAY + late
    hand.clock.now = lambda: at  # type: ignore[method-assign]

    with caplog.at_level(logging.WARNING, "components.services.queues.worker.periodic"):
        hand.tick()

    assert len(stored()) == 1
    assert len(caplog.records) == reported


def test_with_all_so_many_at_most(redis: Redis) -> None:
    entry = declare(every(seconds=1), missed="all")
    was_last(redis, entry, server_time() - DAY)
    hand = Hand()

    hand.tick()

    found = ticks()
    assert len(found) == MOST
    assert found == sorted(found, key=lambda tick: tick or datetime.max)
    assert found[-1] == Ticks().last([entry.name])[entry.name]


@pytest.mark.parametrize("missed", ["once", "all"])
def test_a_worker_that_was_away_pushes_nothing_that_another_has_pushed(
    redis: Redis, redis_server: EmbeddedServer, missed: MissedPolicy
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


# --- What goes wrong -------------------------------------------------------------------------------


def test_an_entry_that_cannot_be_pushed_is_reported_once_tried_again_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = declare(value="x" * 200)
    declare(value="y")
    hand = Hand()
    with options(max_body=100), caplog.at_level(logging.ERROR, "components.services.queues.worker.periodic"):
        hand.tick()
        hand.tick(DAY)
        pause = hand.tick(RETRY)

    assert [info.args for info in stored()] == [["y"]]
    assert 0 < pause <= RETRY.total_seconds()
    [record] = caplog.records
    assert wrong.name in record.getMessage()
    hand.tick(RETRY)
    assert sorted(str(info.args[0])[0] for info in stored()) == ["x", "y"]


def test_a_queue_that_the_settings_do_not_know_gets_no_tick(caplog: pytest.LogCaptureFixture) -> None:
    declare()
    allowed = {"BACKEND": "components.tasks.RedisBackend", "QUEUES": ["mail"]}
    with override_settings(TASKS={"default": allowed}), caplog.at_level(logging.ERROR):
        hand = Hand()
        hand.tick()
        hand.tick(DAY)

    assert stored() == []
    assert len(caplog.records) == 1


def test_while_redis_is_away_the_ticker_says_so_and_its_tick_is_not_lost() -> None:
    declare()
    hand = Hand()
    hand.tick()
    with redis_at("unix:///nowhere/at-all.sock"), pytest.raises(RedisUnavailable):
        hand.tick(DAY)

    hand.tick()

    assert len(stored()) == 1


# --- Workers ---------------------------------------------------------------------------------------


def test_a_worker_runs_what_is_due_before_it_finds_that_nothing_is_left(
    redis: Redis, make_worker: MakeWorker
) -> None:
    was_last(redis, declare(value="due"), server_time() - DAY)

    assert make_worker(burst=True).run() == 0

    assert tasks.notes == ["due"]


def test_a_worker_whose_slots_are_all_taken_still_ticks(
    make_worker: MakeWorker, start: Start, patient: None
) -> None:
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


# --- The control room ------------------------------------------------------------------------------


def test_the_overview_tells_the_last_and_the_next_tick(redis: Redis) -> None:
    entry, fresh, jumped, unseen = (declare(value=value) for value in "abcd")
    latest = full(server_time(), DAY)
    was_last(redis, entry, latest)
    was_last(redis, fresh, latest + SECOND)  # became known then
    was_last(redis, jumped, latest + 1_000 * DAY)

    found = {info.periodic.name: (info.last_at, info.next_at) for info in overview()}

    assert found == {
        entry.name: (latest, latest + DAY),
        fresh.name: (None, latest + DAY),
        jumped.name: (None, latest + DAY),
        unseen.name: (None, None),
    }
