"""The @task decorator, and each policy that a task may have, without a worker's loop."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.utils.connection import ConnectionDoesNotExist
from pytest_django import DjangoDbBlocker
from redis import Redis

from components.exceptions import NotSerializable, RedisUnavailable
from components.kit.compat import (
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from components.kit.compat import task as djangos_task
from components.services.queues import Concurrency, Consumer, PolicyTask, TaskQueue, keys, task
from components.services.queues.backend import RedisBackend
from components.services.queues.new_task import LONGEST_DELAY
from components.services.queues.policy import doubled
from components.testing import redis_at, run_tasks
from tests.support.queues import claim_one, come_due, found, options, places

INFINITE = float("inf")


def as_told(error: BaseException, result: TaskResult) -> Any:
    """Return the first argument of the task, or raise it."""
    if isinstance(result.args[0], str) and result.args[0].startswith("raise"):
        raise LookupError("no idea")
    return result.args[0]


def by_name(name: str, other: Any = None) -> str:
    return name.casefold()


@task(max_attempts=3)
def fail(*args: Any) -> None:
    raise ValueError("no")


@task(max_attempts=2, backoff=100)
def fail_slowly() -> None:
    raise ValueError("no")


@task(max_attempts=9, backoff=as_told)
def fail_as_told(said: Any) -> None:
    raise ValueError("no")


@task(lease=600)
def lease() -> None: ...


@task(result_ttl=600)
def forget() -> None: ...


@task(unique=True)
def only_one(*args: Any, **kwargs: Any) -> None: ...


@task(unique=by_name)
def one_per_name(name: str, other: Any = None) -> None: ...


@task(on_commit=True)
def later(value: Any = None) -> Any:
    return value


@task(on_commit=True, unique=True)
def later_only_one(*args: Any) -> None: ...


@task(on_commit="file")
def later_in_the_file() -> None: ...


@task(
    priority=5,
    max_attempts=7,
    backoff=as_told,
    lease=60,
    timeout=30,
    result_ttl=60,
    unique=by_name,
    on_commit=True,
)
def all_there_is(name: str = "") -> str:
    return name


@task(takes_context=True)
async def coroutine(context: Any) -> int:
    return context.attempt


def plain() -> None: ...


def stock(*args: Any) -> None:
    raise ValueError("no")


# As it is where another backend, without a class of its own, has declared it; Django 6.0 wants every field.
stock = Task(func=stock, priority=0, backend="default", queue_name="default", run_after=None)


pytestmark = pytest.mark.usefixtures("redis")
in_transactions = pytest.mark.django_db(transaction=True)


def own_backend() -> RedisBackend:
    backend = task_backends["default"]
    assert isinstance(backend, RedisBackend)
    return backend


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """The ids that the signal task_enqueued told."""
    ids: list[str] = []

    def hear(task_result: TaskResult, **kwargs: Any) -> None:
        ids.append(task_result.id)

    task_enqueued.connect(hear)
    yield ids
    task_enqueued.disconnect(hear)


@pytest.fixture
def file(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A second database, without the transaction of the test."""
    connections.settings["file"] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "db.sqlite3"),
        "OPTIONS": {},
    }
    with django_db_blocker.unblock():
        yield "file"
        connections["file"].close()
    del connections["file"]
    del connections.settings["file"]


# --- The decorator ---------------------------------------------------------------------------------


def test_a_policy_is_on_the_task_and_stays_when_the_task_is_used_otherwise() -> None:
    assert isinstance(djangos_task(plain), PolicyTask)
    assert djangos_task(plain) == task(plain)
    changed = all_there_is.using(priority=9, queue_name="mail")
    assert changed == replace(all_there_is, priority=9, queue_name="mail")
    assert (changed.max_attempts, changed.lease, changed.unique) == (7, 60, by_name)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_attempts", [0, 1.5, "3", True, 2_000_000_000]),
        ("backoff", [-1, "10", float("nan"), INFINITE, 1.1e9]),
        ("lease", [0.5, INFINITE, 1.1e9]),
        ("timeout", [0, 0.0009, "1"]),
        ("result_ttl", [59, INFINITE, 1.1e9]),
        ("unique", ["key", None]),
        ("concurrency", [0, -1, 1.5, "2", True, Concurrency(0), Concurrency("x")]),  # type: ignore[arg-type]
        ("sensitive", ["yes", None]),
        ("on_commit", [1, None]),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_its_name(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidTask, match=rf"^tests\.queues\.declaring\.test_policy\.plain: {name} is "):
            task(**{name: value})(plain)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_attempts", [1, 10**9]),
        ("backoff", [0, 1e9, by_name]),
        ("lease", [1, 1e9]),
        ("timeout", [0.001, INFINITE]),
        ("result_ttl", [60, 1e9]),
        ("concurrency", [1, 10**9, Concurrency(1, by_name)]),
    ],
)
def test_the_least_and_the_most_of_a_policy_are_allowed(name: str, values: list[Any]) -> None:
    for value in values:
        assert getattr(task(**{name: value})(plain), name) == value


@pytest.mark.parametrize(
    "declared",
    [fail, all_there_is, coroutine.using(run_after=timedelta(hours=1)), lease.using(priority=3)],
)
def test_a_task_can_be_copied_and_pickled(declared: PolicyTask) -> None:
    assert deepcopy(declared) == declared
    if hasattr(Task, "_reconstruct"):  # the Django that lets tasks be pickled
        again = pickle.loads(pickle.dumps(declared))
        assert again == declared
        assert type(again) is PolicyTask


# --- Attempts --------------------------------------------------------------------------------------


def run_next(redis: Redis, result: TaskResult) -> TaskResult:
    """The next attempt, whenever it is due."""
    if places() == {"delayed": [result.id]}:
        come_due(redis, result.id)
    run_tasks(limit=1)
    result.refresh()
    return result


@pytest.mark.parametrize(("declared", "attempts"), [(stock, 2), (fail.using(priority=1), 3)])
def test_a_task_that_says_nothing_has_the_attempts_of_the_options(declared: Task, attempts: int) -> None:
    with options(max_attempts=2, backoff=0.0):
        result = declared.enqueue()
        assert [info.starts for info in run_tasks()] == list(range(1, attempts + 1))
        result.refresh()

    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, attempts)


@pytest.mark.parametrize(
    ("attempt", "most"), [(1, 100), (2, 200), (6, 3_200), (7, 3_600), (61, 3_600), (10_000, 3_600)]
)
def test_a_delay_doubles_up_to_the_longest_and_chance_takes_up_to_half_of_it(
    monkeypatch: pytest.MonkeyPatch, attempt: int, most: int
) -> None:
    monkeypatch.setattr("random.uniform", lambda least, most: (least, most))

    assert doubled(100, 3_600, attempt) == (most / 2, most)


def due_in(result: TaskResult) -> float:
    """The seconds between the last attempt and the next."""
    info = found(result.id)
    assert info.due_at is not None
    assert info.last_attempted_at is not None
    return (info.due_at - info.last_attempted_at).total_seconds()


@pytest.mark.parametrize(
    ("declared", "args", "least", "most"),
    [
        (fail_slowly, (), 50, 100),
        (stock, (), 250, 500),
        (fail_as_told, (7,), 7, 7),
        (fail_as_told, ("7.5",), 7.5, 7.5),
        (fail_as_told, (LONGEST_DELAY,), LONGEST_DELAY, LONGEST_DELAY),
    ],
)
def test_a_delay_is_that_of_the_task_or_that_of_the_options(
    redis: Redis, declared: Task, args: Any, least: float, most: float
) -> None:
    with options(max_attempts=3, backoff=10_000, max_backoff=500):
        result = declared.enqueue(*args)
        run_next(redis, result)

    assert least <= due_in(result) < most + 60


@pytest.mark.parametrize("said", [None, "soon", -1, [], LONGEST_DELAY + 1, "nan", "raise"])
def test_a_function_that_says_none_or_nonsense_ends_it(
    redis: Redis, said: Any, caplog: pytest.LogCaptureFixture
) -> None:
    result = fail_as_told.enqueue(said)

    assert run_next(redis, result).status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [ValueError]
    logged = [entry.levelno for entry in caplog.records if "The backoff" in entry.getMessage()]
    assert logged == ([] if said is None else [logging.ERROR])


# --- Leases and results ----------------------------------------------------------------------------


def test_a_result_is_kept_as_long_as_its_task_says(redis: Redis) -> None:
    own, options_ = forget.enqueue(), lease.enqueue()
    run_tasks()

    assert 500_000 < redis.pttl(keys.BackendKeys("default").result(own.id)) <= 600_000
    assert redis.pttl(keys.BackendKeys("default").result(options_.id)) > 600_000


# --- Unique ----------------------------------------------------------------------------------------


def test_the_same_call_is_stored_once_while_it_is_unfinished(heard: list[str]) -> None:
    first = only_one.enqueue(1, a=2, b=[3])
    again = only_one.using(priority=9).enqueue(1, b=(3,), a=2)
    assert again == first == only_one.get_result(first.id)
    assert places() == {"ready": [first.id]}

    claim_one(Consumer())
    running = only_one.enqueue(1, a=2, b=[3])
    assert (running.id, running.status) == (first.id, TaskResultStatus.RUNNING)
    assert heard == [first.id]


def test_a_function_of_the_arguments_says_what_is_the_same() -> None:
    first = one_per_name.enqueue("Sword", 1)
    again = one_per_name.enqueue("SWORD", other=2)

    assert (again.id, again.args) == (first.id, ["Sword", 1])
    assert one_per_name.enqueue("shield").id != first.id


def test_a_key_that_cannot_be_made_stores_nothing(redis: Redis) -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(AttributeError):
        one_per_name.enqueue(1)
    for argument in ({1}, circle):
        with pytest.raises(NotSerializable):
            only_one.enqueue(argument)

    assert redis.dbsize() == 0


def test_equal_calls_of_one_batch_are_stored_once(heard: list[str]) -> None:
    results = own_backend().enqueue_many(only_one, [([number % 2], {}) for number in range(4)])

    assert [result.args for result in results] == [[0], [1], [0], [1]]
    assert [result.id for result in results[2:]] == [result.id for result in results[:2]] == heard


# --- On commit -------------------------------------------------------------------------------------


@in_transactions
def test_on_commit_it_is_stored_when_the_transaction_is_committed(heard: list[str]) -> None:
    with transaction.atomic():
        result = later.enqueue(1)
        assert (result.status, result.enqueued_at, result.args) == (TaskResultStatus.READY, None, [1])
        with pytest.raises(TaskResultDoesNotExist):
            later.get_result(result.id)
        assert places() == {}
        assert heard == []

    assert heard == [result.id]
    assert result == later.get_result(result.id)
    assert result.enqueued_at is not None
    assert [info.id for info in run_tasks()] == [result.id]
    at_once = later.enqueue()
    assert places()["ready"] == [at_once.id]


@in_transactions
def test_what_is_rolled_back_takes_its_tasks_with_it(heard: list[str]) -> None:
    with transaction.atomic():
        later.enqueue()
        transaction.set_rollback(True)
    with transaction.atomic():
        with transaction.atomic():
            later.enqueue("lost")
            transaction.set_rollback(True)
        with transaction.atomic():
            kept = later.enqueue("kept")
        assert places() == {}

    assert places() == {"ready": [kept.id]}
    assert heard == [kept.id]


@in_transactions
def test_many_calls_and_calls_from_coroutines_wait_for_the_commit_too(heard: list[str]) -> None:
    with transaction.atomic():
        results = own_backend().enqueue_many(later, [([number], {}) for number in range(3)])
        results.append(async_to_sync(later.aenqueue)())
        assert places() == {}

    assert places() == {"ready": [result.id for result in results]}
    assert heard == [result.id for result in results]


@in_transactions
def test_the_commit_of_the_database_that_it_names_counts(file: str) -> None:
    with transaction.atomic():
        at_once = later_in_the_file.enqueue()
        assert places() == {"ready": [at_once.id]}
    with transaction.atomic(using=file):
        second = later_in_the_file.enqueue()
        assert places() == {"ready": [at_once.id]}

    assert places() == {"ready": [at_once.id, second.id]}


@in_transactions
def test_what_cannot_be_stored_is_refused_before_the_commit(redis: Redis) -> None:
    with pytest.raises(ConnectionDoesNotExist):
        later_in_the_file.enqueue()
    with transaction.atomic(), pytest.raises(NotSerializable):
        later.enqueue({1})

    assert redis.dbsize() == 0


@in_transactions
def test_where_redis_is_away_at_the_commit_the_data_stay_and_the_error_is_raised(
    tmp_path: Path, heard: list[str]
) -> None:
    results: list[TaskResult] = []

    def sell() -> None:
        with transaction.atomic():
            User.objects.create(username="jack")
            results.append(later.enqueue())

    with redis_at(f"unix://{tmp_path}/nothing.sock"), pytest.raises(RedisUnavailable):
        sell()

    assert User.objects.filter(username="jack").exists()
    assert results[0].enqueued_at is None
    assert heard == []


@in_transactions
def test_a_duplicate_has_the_id_of_the_other_from_the_beginning_and_in_its_transaction_only(
    heard: list[str],
) -> None:
    with transaction.atomic():
        rolled_back = later_only_one.enqueue()
        transaction.set_rollback(True)
    with transaction.atomic():
        first, again = later_only_one.enqueue(), later_only_one.enqueue()
        promised = [first.id, again.id]
        other = later_only_one.enqueue("other")
        assert rolled_back.id != first.id == again.id != other.id

    assert [first.id, again.id] == promised
    assert again == first == later_only_one.get_result(first.id)
    assert heard == [first.id, other.id]
    run_tasks()
    with transaction.atomic():
        assert later_only_one.enqueue().id != first.id


@in_transactions
def test_a_duplicate_of_a_call_that_is_rolled_back_is_stored_under_the_id_that_it_has(
    heard: list[str],
) -> None:
    with transaction.atomic():
        with transaction.atomic():
            lost = later_only_one.enqueue()
            transaction.set_rollback(True)
        kept = later_only_one.enqueue()
        with transaction.atomic():
            also_lost = later_only_one.enqueue()
            transaction.set_rollback(True)
        promised = kept.id

    assert kept == later_only_one.get_result(promised)
    assert heard == [kept.id] == [promised]
    assert {lost.enqueued_at, also_lost.enqueued_at} == {None}


@in_transactions
def test_the_id_stays_if_another_task_has_the_unique_key_at_the_commit(heard: list[str]) -> None:
    rival = later_only_one.enqueue()
    with transaction.atomic():
        result = later_only_one.enqueue()
        promised = result.id

    assert result.id == promised != rival.id
    assert result.enqueued_at is None
    assert places() == {"ready": [rival.id]}
    assert heard == [rival.id]


# --- run_after -------------------------------------------------------------------------------------


@in_transactions
@pytest.mark.parametrize("declared", [lease, later])
def test_a_timedelta_counts_from_the_servers_time_at_which_it_is_stored(declared: Task) -> None:
    delay = timedelta(days=3, microseconds=7)
    with transaction.atomic():
        result = declared.using(run_after=delay).enqueue()

    assert result.task.run_after == result.enqueued_at + delay
    assert result == declared.get_result(result.id)
    assert places() == {"delayed": [result.id]}


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(days=-1)], ids=["zero", "negative"])
def test_a_timedelta_that_is_over_means_now(delay: timedelta) -> None:
    result = lease.using(run_after=delay).enqueue()

    assert result.task.run_after is None
    assert result == lease.get_result(result.id)
    assert places() == {"ready": [result.id]}


@pytest.mark.parametrize("hours", [14, 0, -12])
def test_the_first_instant_of_all_is_past_and_any_time_zone_can_show_it(hours: int) -> None:
    result = lease.using(run_after=datetime.min.replace(tzinfo=timezone(timedelta(hours=hours)))).enqueue()

    assert result.task.run_after is not None
    assert result == lease.get_result(result.id)
    [info] = TaskQueue().tasks("default", "ready")
    assert (info.id, info.run_after) == (result.id, result.task.run_after)
    for name in ("Pacific/Kiritimati", "America/Los_Angeles"):
        assert result.task.run_after.astimezone(ZoneInfo(name)).year == 1


@pytest.mark.parametrize(
    ("latest", "too_late"),
    [
        (datetime(2248, 1, 1, tzinfo=UTC), datetime(2248, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        (timedelta(seconds=LONGEST_DELAY), timedelta(seconds=LONGEST_DELAY, microseconds=1)),
        (timedelta(seconds=LONGEST_DELAY), timedelta.max),
    ],
)
def test_an_instant_that_redis_cannot_hold_is_refused_at_once(latest: Any, too_late: Any) -> None:
    result = lease.using(run_after=latest).enqueue()

    assert result == lease.get_result(result.id)
    assert places() == {"delayed": [result.id]}
    with pytest.raises(InvalidTask, match="run_after"):
        lease.using(run_after=too_late)
