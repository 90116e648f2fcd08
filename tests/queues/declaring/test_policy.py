"""services/queues/declaring.py: the decorator, and each policy that a task may have, without a worker's loop."""

from __future__ import annotations

import asyncio
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
from django.test.utils import override_settings
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
from components.services.queues import Consumer, PolicyTask, TaskQueue, is_cancelled, keys, progress, task
from components.services.queues.backend import RedisBackend
from components.testing import redis_at, run_tasks
from tests.support.queues import claim_one, come_due, failed, hand_in, options, places, server_time

DJANGOS = Task.__module__.rpartition(".")[0]
NOT_AGAIN = {"backoff": 0.0}


def says_nothing_sensible(error: BaseException, result: TaskResult) -> Any:
    return result.args[0]


def raises(error: BaseException, result: TaskResult) -> float:
    raise LookupError("no idea")


#: What backoff functions were asked with.
asked: list[tuple[str, int]] = []


def ten_times_the_attempt(error: BaseException, result: TaskResult) -> float:
    asked.append((str(error), result.attempts))
    return 10.0 * result.attempts


def by_name(name: str, other: Any = None) -> str:
    return name.casefold()


@task(max_attempts=3)
def fail(*args: Any) -> None:
    raise ValueError("no")


@task(max_attempts=2, backoff=100)
def fail_slowly() -> None:
    raise ValueError("no")


@task(max_attempts=9, backoff=ten_times_the_attempt)
def fail_by_function() -> None:
    raise ValueError("no")


@task(max_attempts=9, backoff=says_nothing_sensible)
def fail_as_told(said: Any) -> None:
    raise ValueError("no")


@task(max_attempts=9, backoff=raises)
def fail_twice_over() -> None:
    raise ValueError("no")


@task(max_attempts=1)
def fail_once() -> None:
    raise ValueError("no")


@task(lease=600)
def lease() -> None: ...


@task(result_ttl=600)
def forget() -> None: ...


@task(unique=True)
def only_one(*args: Any, **kwargs: Any) -> None: ...


@task(unique=True, max_attempts=2)
def only_one_failing() -> None:
    raise ValueError("no")


@task(unique=by_name)
def one_per_name(name: str, other: Any = None) -> None: ...


@task(on_commit=True)
def later(value: Any = None) -> Any:
    return value


@task(on_commit=True, unique=True)
def later_only_one() -> None: ...


@task(on_commit="file")
def later_in_the_file() -> None: ...


@task(
    priority=5,
    max_attempts=7,
    backoff=ten_times_the_attempt,
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


def test_a_task_without_a_policy_is_one_of_djangos() -> None:
    declared = task(plain)

    assert isinstance(declared, Task)
    assert (declared.priority, declared.queue_name, declared.backend) == (0, "default", "default")
    assert (declared.max_attempts, declared.unique, declared.on_commit) == (None, False, False)


def test_the_policy_is_on_the_task() -> None:
    assert (all_there_is.priority, all_there_is.max_attempts, all_there_is.lease) == (5, 7, 60)
    assert (all_there_is.timeout, all_there_is.result_ttl, all_there_is.on_commit) == (30, 60, True)
    assert (all_there_is.backoff, all_there_is.unique) == (ten_times_the_attempt, by_name)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"max_attempts": 0}, "max_attempts is 0; it must be a number, 1 to"),
        ({"max_attempts": 1.5}, r"max_attempts is 1\.5; it must be a whole number"),
        ({"max_attempts": "3"}, "max_attempts is '3'"),
        ({"max_attempts": True}, "max_attempts is True"),
        ({"backoff": -1}, "backoff is -1; it must be seconds, or a function"),
        ({"backoff": "10"}, "backoff is '10'"),
        ({"backoff": float("nan")}, "backoff is nan"),
        ({"lease": 0.5}, r"lease is 0\.5; it must be a number, 1 to"),
        ({"timeout": 0}, r"timeout is 0; it must be a number, 0\.001 to inf"),
        ({"result_ttl": 59}, "result_ttl is 59; it must be a number, 60 to"),
        ({"unique": "key"}, "unique is 'key'; it must be True, or a function"),
        ({"sensitive": "yes"}, "sensitive is 'yes'; it must be True or False"),
        ({"on_commit": 1}, "on_commit is 1; it must be True, or the alias of a database"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_its_name(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidTask, match=rf"^tests\.queues\.declaring\.test_policy\.plain: {message}"):
        task(**policy)(plain)


@pytest.mark.parametrize(
    "policy", [{"lease": float("inf")}, {"result_ttl": float("inf")}, {"backoff": float("inf")}]
)
def test_an_infinite_duration_is_refused_where_there_is_none(policy: dict[str, Any]) -> None:
    with pytest.raises(InvalidTask, match="is inf"):
        task(**policy)(plain)


def test_a_timeout_may_be_for_ever() -> None:
    assert task(timeout=float("inf"))(plain).timeout == float("inf")


def test_an_invalid_policy_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="max_atempts"):
        task(max_atempts=3)(plain)  # type: ignore[call-overload]


def test_arguments_that_django_refuses_are_refused_here_too() -> None:
    with pytest.raises(InvalidTask, match="priority"):
        task(priority=101)(plain)
    with pytest.raises(InvalidTask, match="context"):
        task(takes_context=True)(plain)


def test_using_keeps_the_policy() -> None:
    changed = all_there_is.using(priority=9, queue_name="mail")

    assert changed == replace(all_there_is, priority=9, queue_name="mail")
    assert isinstance(changed, PolicyTask)


def test_django_own_decorator_makes_tasks_that_can_have_a_policy() -> None:
    declared = djangos_task(plain)

    assert isinstance(declared, PolicyTask)
    assert declared == task(plain)


def test_a_task_that_django_declared_elsewhere_has_the_policy_of_the_options(redis: Redis) -> None:
    assert type(stock) is Task
    with options(max_attempts=2, backoff=0.0):
        result = stock.enqueue(1)
        run_tasks()

        assert stock.get_result(result.id).attempts == 2
        assert places() == {"dead": [result.id]}


@pytest.mark.parametrize("declared", [fail, all_there_is, coroutine, lease.using(priority=3)])
def test_a_task_can_be_copied(declared: PolicyTask) -> None:
    assert deepcopy(declared) == declared


if hasattr(Task, "_reconstruct"):  # the Django that lets tasks be pickled

    @pytest.mark.parametrize(
        "declared",
        [fail, all_there_is, coroutine.using(run_after=timedelta(hours=1)), lease.using(priority=3)],
    )
    def test_a_task_can_be_pickled(declared: PolicyTask) -> None:
        again = pickle.loads(pickle.dumps(declared))

        assert again == declared
        assert type(again) is PolicyTask


def djangos(backend: str) -> Any:
    return override_settings(TASKS={"default": {"BACKEND": f"{DJANGOS}.backends.{backend}", "QUEUES": []}})


def test_djangos_immediate_backend_runs_it_once_and_ignores_the_policy(redis: Redis) -> None:
    with djangos("immediate.ImmediateBackend"):
        assert all_there_is.enqueue("sword").return_value == "sword"
        assert coroutine.enqueue().return_value == 1
        failed = fail.enqueue()

    assert (failed.status, failed.attempts, len(failed.errors)) == (TaskResultStatus.FAILED, 1, 1)
    assert redis.dbsize() == 0


def test_djangos_dummy_backend_keeps_it(redis: Redis) -> None:
    with djangos("dummy.DummyBackend"):
        results = [all_there_is.enqueue("sword") for _ in range(2)]

        assert [result.task for result in task_backends["default"].results] == [all_there_is] * 2
        assert results[0].id != results[1].id
    assert redis.dbsize() == 0


def test_outside_of_a_worker_there_is_no_progress_and_nothing_is_cancelled(redis: Redis) -> None:
    progress(1, 2, "half")

    assert is_cancelled() is False
    assert redis.dbsize() == 0


# --- Attempts --------------------------------------------------------------------------------------


def run_next(redis: Redis, result: TaskResult) -> TaskResult:
    """The next attempt, whenever it is due."""
    if places() == {"delayed": [result.id]}:
        come_due(redis, result.id)
    run_tasks(limit=1)
    result.refresh()
    return result


def test_between_its_attempts_a_task_is_ready_and_its_errors_grow(redis: Redis) -> None:
    result = fail.enqueue()

    for attempt in (1, 2):
        run_next(redis, result)
        assert (result.status, result.attempts, len(result.errors)) == (
            TaskResultStatus.READY,
            attempt,
            attempt,
        )
        assert result == fail.get_result(result.id)
        assert result.finished_at is None
    run_next(redis, result)

    assert (result.status, result.attempts, len(result.errors)) == (TaskResultStatus.FAILED, 3, 3)
    assert {error.exception_class for error in result.errors} == {ValueError}
    assert places() == {"dead": [result.id]}


def test_a_task_that_says_nothing_has_the_attempts_of_the_options(redis: Redis) -> None:
    with options(max_attempts=2, backoff=0.0):
        result = stock.enqueue()
        assert [info.starts for info in run_tasks()] == [1, 2]
        result.refresh()

    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 2)


def test_a_task_may_have_fewer_attempts_than_the_options_say() -> None:
    with options(max_attempts=9):
        result = fail_once.enqueue()
        run_tasks()
        result.refresh()

    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)


def due_in(result: TaskResult) -> float:
    """The seconds between the last attempt and the next."""
    info = TaskQueue().get(result.id)
    assert info is not None
    assert info.due_at is not None
    assert info.last_attempted_at is not None
    return (info.due_at - info.last_attempted_at).total_seconds()


def test_the_delay_of_a_number_is_that_with_up_to_half_taken_off(redis: Redis) -> None:
    result = fail_slowly.enqueue()
    run_next(redis, result)

    assert 50 <= due_in(result) < 150


def test_a_function_says_the_delay_from_the_error_and_the_result(redis: Redis) -> None:
    asked.clear()
    result = fail_by_function.enqueue()

    run_next(redis, result)
    assert 10 <= due_in(result) < 20
    run_next(redis, result)
    assert 20 <= due_in(result) < 30
    assert asked == [("no", 1), ("no", 2)]


def test_a_function_that_says_none_ends_it(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    result = fail_as_told.enqueue(None)

    assert run_next(redis, result).status == TaskResultStatus.FAILED
    assert result.attempts == 1
    assert "The backoff" not in caplog.text


@pytest.mark.parametrize("said", ["soon", -1, [], 1e12, "nan"])
def test_a_function_that_says_nonsense_ends_it_and_is_in_the_log(
    redis: Redis, said: Any, caplog: pytest.LogCaptureFixture
) -> None:
    result = fail_as_told.enqueue(said)

    assert run_next(redis, result).status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [ValueError]
    assert (
        "The backoff of tests.queues.declaring.test_policy.fail_as_told failed; the task is not retried"
        in caplog.text
    )


def test_a_function_that_raises_ends_it_and_is_in_the_log(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    result = fail_twice_over.enqueue()

    assert run_next(redis, result).status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [ValueError]
    (record,) = [entry for entry in caplog.records if "The backoff" in entry.getMessage()]
    assert record.levelno == logging.ERROR
    assert "LookupError('no idea')" in record.getMessage()


# --- Leases and results ----------------------------------------------------------------------------


def test_a_task_may_have_a_lease_of_its_own() -> None:
    result = lease.enqueue()
    claim_one(Consumer())

    info = TaskQueue().get(result.id)
    assert info is not None
    assert info.lease_expires_at is not None
    assert info.last_attempted_at is not None
    assert 599 < (info.lease_expires_at - info.last_attempted_at).total_seconds() < 601


def test_the_lease_of_its_own_is_renewed_as_it_is(redis: Redis) -> None:
    result = lease.enqueue()
    consumer = Consumer()
    claimed = claim_one(consumer)
    redis.zadd(keys.QueueKeys("default", "default").running, {result.id: 1})

    consumer.renew(["default"], [claimed])

    info = TaskQueue().get(result.id)
    assert info is not None
    assert info.lease_expires_at is not None
    assert info.lease_expires_at > server_time() + timedelta(seconds=500)


def test_a_result_is_kept_as_long_as_its_task_says(redis: Redis) -> None:
    own, options_ = forget.enqueue(), lease.enqueue()
    run_tasks()

    assert 0 < redis.pttl(keys.BackendKeys("default").result(own.id)) <= 600_000
    assert redis.pttl(keys.BackendKeys("default").result(options_.id)) > 600_000


# --- Unique ----------------------------------------------------------------------------------------


def test_the_same_call_is_stored_once_while_it_is_unfinished(redis: Redis, heard: list[str]) -> None:
    first = only_one.enqueue(1, a=2, b=[3])
    again = only_one.using(priority=9).enqueue(1, b=(3,), a=2)

    assert again == first == only_one.get_result(first.id)
    assert places() == {"ready": [first.id]}
    assert heard == [first.id]


def test_other_arguments_and_other_tasks_are_other_calls() -> None:
    results = [
        only_one.enqueue(1),
        only_one.enqueue("1"),
        only_one.enqueue(a=1),
        one_per_name.enqueue("1"),
    ]

    assert len({result.id for result in results}) == 4


def test_a_running_request_is_unfinished_and_the_repeated_call_gets_its_result(heard: list[str]) -> None:
    first = only_one.enqueue()
    claim_one(Consumer())

    again = only_one.enqueue()

    assert (again.id, again.status) == (first.id, TaskResultStatus.RUNNING)
    assert again == only_one.get_result(first.id)
    assert heard == [first.id]


def test_when_it_has_ended_the_next_call_is_stored() -> None:
    first = only_one.enqueue()
    run_tasks()
    second = only_one.enqueue()

    assert second.id != first.id
    assert [info.id for info in run_tasks()] == [second.id]


def test_a_task_that_is_to_be_tried_again_is_unfinished(redis: Redis) -> None:
    first = only_one_failing.enqueue()
    assert run_next(redis, first).status == TaskResultStatus.READY

    again = only_one_failing.enqueue()
    assert (again.id, again.attempts) == (first.id, 1)
    assert run_next(redis, first).status == TaskResultStatus.FAILED
    assert only_one_failing.enqueue().id != first.id


def test_a_function_of_the_arguments_says_what_is_the_same() -> None:
    first = one_per_name.enqueue("Sword", 1)

    again = one_per_name.enqueue("SWORD", other=2)

    assert (again.id, again.args) == (first.id, ["Sword", 1])
    assert one_per_name.enqueue("shield").id != first.id


def test_a_key_that_cannot_be_made_stores_nothing(redis: Redis) -> None:
    with pytest.raises(AttributeError, match="casefold"):
        one_per_name.enqueue(1)
    with pytest.raises(NotSerializable):
        only_one.enqueue({1})

    assert redis.dbsize() == 0


def test_arguments_that_contain_themselves_are_refused(redis: Redis) -> None:
    circle: list[Any] = []
    circle.append(circle)

    with pytest.raises(NotSerializable, match="contain themselves"):
        only_one.enqueue(circle)
    assert redis.dbsize() == 0


def test_identical_concurrent_calls_are_stored_once(heard: list[str]) -> None:
    backend = task_backends["default"]
    assert isinstance(backend, RedisBackend)

    results = backend.enqueue_many(only_one, [([number % 2], {}) for number in range(4)])

    assert [result.args for result in results] == [[0], [1], [0], [1]]
    assert [result.id for result in results[2:]] == [result.id for result in results[:2]] == heard


# --- On commit -------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
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


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_is_rolled_back_stores_nothing(redis: Redis, heard: list[str]) -> None:
    with transaction.atomic():
        later.enqueue()
        transaction.set_rollback(True)

    assert redis.dbsize() == 0
    assert heard == []


@pytest.mark.django_db(transaction=True)
def test_a_savepoint_that_is_rolled_back_takes_its_tasks_with_it() -> None:
    with transaction.atomic():
        with transaction.atomic():
            later.enqueue("lost")
            transaction.set_rollback(True)
        with transaction.atomic():
            kept = later.enqueue("kept")
        assert places() == {}

    assert places() == {"ready": [kept.id]}


@pytest.mark.django_db(transaction=True)
def test_outside_of_a_transaction_it_is_stored_at_once() -> None:
    result = later.enqueue()

    assert result == later.get_result(result.id)
    assert places() == {"ready": [result.id]}


@pytest.mark.django_db(transaction=True)
def test_the_asynchronous_door_waits_for_the_commit_too() -> None:
    with transaction.atomic():
        result = async_to_sync(later.aenqueue)()
        assert places() == {}

    assert places() == {"ready": [result.id]}


@pytest.mark.django_db(transaction=True)
def test_the_commit_of_the_database_that_it_names_counts(file: str) -> None:
    with transaction.atomic():
        at_once = later_in_the_file.enqueue()
        assert places() == {"ready": [at_once.id]}
    with transaction.atomic(using=file):
        second = later_in_the_file.enqueue()
        assert places() == {"ready": [at_once.id]}

    assert places() == {"ready": [at_once.id, second.id]}


def test_a_database_that_is_none_is_an_error_when_it_is_enqueued(redis: Redis) -> None:
    with pytest.raises(ConnectionDoesNotExist, match="file"):
        later_in_the_file.enqueue()
    assert redis.dbsize() == 0


@pytest.mark.django_db(transaction=True)
def test_an_argument_that_cannot_be_stored_is_refused_before_the_commit(redis: Redis) -> None:
    with transaction.atomic(), pytest.raises(NotSerializable):
        later.enqueue({1})

    assert redis.dbsize() == 0


@pytest.mark.django_db(transaction=True)
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


@pytest.mark.django_db(transaction=True)
def test_a_duplicate_in_the_same_transaction_has_the_id_of_the_other_from_the_beginning(
    heard: list[str],
) -> None:
    with transaction.atomic():
        first, again = later_only_one.enqueue(), later_only_one.enqueue()
        promised = [first.id, again.id]
        other = later_only_one.enqueue("other")
        assert first.id == again.id != other.id

    assert [first.id, again.id] == promised
    assert again == first == later_only_one.get_result(first.id)
    assert heard == [first.id, other.id]


@pytest.mark.django_db(transaction=True)
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

    assert kept.id == promised
    assert kept == later_only_one.get_result(promised)
    assert heard == [promised]
    assert {lost.enqueued_at, also_lost.enqueued_at} == {None}


@pytest.mark.django_db(transaction=True)
def test_the_id_stays_if_another_task_has_the_unique_key_at_the_commit(
    heard: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    rival = later_only_one.enqueue()
    with transaction.atomic():
        result = later_only_one.enqueue()
        promised = result.id

    with caplog.at_level(logging.INFO, "components.services.queues.backend"), transaction.atomic():
        later_only_one.enqueue()

    assert result.id == promised != rival.id
    assert result.enqueued_at is None
    with pytest.raises(TaskResultDoesNotExist):
        later_only_one.get_result(promised)
    assert places() == {"ready": [rival.id]}
    assert heard == [rival.id]
    assert f"is not stored: the unfinished task {rival.id} has its unique key." in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_later_transaction_promises_anew(heard: list[str]) -> None:
    with transaction.atomic():
        rolled_back = later_only_one.enqueue()
        transaction.set_rollback(True)
    with transaction.atomic():
        first = later_only_one.enqueue()
    assert [info.id for info in run_tasks()] == [first.id]
    with transaction.atomic():
        second = later_only_one.enqueue()

    assert len({rolled_back.id, first.id, second.id}) == 3
    assert places() == {"ready": [second.id], "successful": [first.id]}


@pytest.mark.django_db(transaction=True)
def test_many_calls_wait_for_the_commit_together(heard: list[str]) -> None:
    backend = task_backends["default"]
    assert isinstance(backend, RedisBackend)
    with transaction.atomic():
        results = backend.enqueue_many(later, [([number], {}) for number in range(3)])
        assert places() == {}

    assert places() == {"ready": [result.id for result in results]}
    assert heard == [result.id for result in results]


@pytest.mark.django_db(transaction=True)
def test_a_timedelta_counts_from_the_commit() -> None:
    with transaction.atomic():
        result = later.using(run_after=timedelta(hours=1)).enqueue()

    assert result == later.get_result(result.id)
    assert result.task.run_after == result.enqueued_at + timedelta(hours=1)


# --- run_after -------------------------------------------------------------------------------------


def test_a_timedelta_counts_from_the_servers_time_to_the_microsecond() -> None:
    delay = timedelta(days=3, microseconds=7)

    result = lease.using(run_after=delay).enqueue()

    assert result.task.run_after == result.enqueued_at + delay
    assert result == lease.get_result(result.id)
    assert places() == {"delayed": [result.id]}


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(days=-1)], ids=["zero", "negative"])
def test_a_timedelta_that_is_over_means_now(delay: timedelta) -> None:
    result = lease.using(run_after=delay).enqueue()

    assert result.task.run_after is None
    assert result == lease.get_result(result.id)
    assert places() == {"ready": [result.id]}


@pytest.mark.parametrize("year", [1, 1500, 1969])
@pytest.mark.parametrize("verb", ["cancel", "delete", "resend", "bury"])
def test_an_instant_before_1970_breaks_nothing_of_a_unique_task(redis: Redis, year: int, verb: str) -> None:
    run_after, queue = datetime(year, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC), TaskQueue()
    result = only_one.using(run_after=run_after, priority=7).enqueue()
    assert result.task.run_after == run_after
    assert result == only_one.get_result(result.id)

    if verb == "delete":
        assert queue.delete("default", "ready", [result.id]) == 1
    elif verb == "bury":
        consumer = Consumer()
        hand_in(consumer, failed(claim_one(consumer)))
    else:
        assert queue.cancel("default", [result.id]).at_once == 1
    if verb == "resend":
        assert queue.resend("default", [result.id]).sent == 1
        assert claim_one(Consumer()).read().priority == 7

    is_free = redis.hlen(keys.BackendKeys("default").uniques) == 0
    assert is_free == (verb != "resend")
    assert (only_one.enqueue().id == result.id) == (verb == "resend")


@pytest.mark.parametrize("hours", [14, 0, -12])
def test_the_first_instant_of_all_is_past_and_any_time_zone_can_show_it(hours: int) -> None:
    run_after = datetime.min.replace(tzinfo=timezone(timedelta(hours=hours)))

    result = lease.using(run_after=run_after).enqueue()

    assert result.task.run_after is not None
    assert result == lease.get_result(result.id)
    [info] = TaskQueue().tasks("default", "ready")
    assert (info.id, info.run_after) == (result.id, result.task.run_after)
    for name in ("Pacific/Kiritimati", "America/Los_Angeles"):
        assert result.task.run_after.astimezone(ZoneInfo(name)).year == 1


@pytest.mark.parametrize(
    "run_after", [datetime(2248, 1, 1, 0, 0, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC), timedelta.max]
)
def test_an_instant_that_redis_cannot_hold_is_refused_at_once(run_after: datetime | timedelta) -> None:
    with pytest.raises(InvalidTask, match=r"run_after is .* must be at most 2248"):
        lease.using(run_after=run_after)


@pytest.mark.parametrize("run_after", [datetime(2248, 1, 1, tzinfo=UTC), timedelta(days=100 * 366)])
def test_the_latest_instant_can_be_stored(run_after: datetime | timedelta) -> None:
    result = lease.using(run_after=run_after).enqueue()

    assert result == lease.get_result(result.id)
    assert places() == {"delayed": [result.id]}


# --- From coroutines -------------------------------------------------------------------------------


def test_from_a_coroutine_too_the_same_call_is_stored_and_told_once(heard: list[str]) -> None:
    async def twice() -> list[TaskResult]:
        return [await only_one.aenqueue(1), await only_one.aenqueue(1)]

    first, again = asyncio.run(twice())

    assert again == first
    assert heard == [first.id]


def test_from_a_coroutine_too_a_receiver_that_raises_refuses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def raise_it(**kwargs: Any) -> None:
        raise RuntimeError("a receiver's own trouble")

    task_enqueued.connect(raise_it)
    try:
        result = asyncio.run(lease.aenqueue())
    finally:
        task_enqueued.disconnect(raise_it)

    assert places() == {"ready": [result.id]}
    assert "RuntimeError: a receiver's own trouble" in caplog.text
