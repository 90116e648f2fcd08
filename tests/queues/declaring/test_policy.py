"""The @task decorator, and each policy that a task may have, without a worker's loop."""

import asyncio
import logging
import pickle
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.test import TestCase
from redis import Redis

from components.exceptions import NotSerializable
from components.kit.compat import (
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
)
from components.kit.compat import task as djangos_task
from components.kit.validation import LONGEST
from components.services.locks import lock
from components.services.queues import (
    Concurrency,
    Consumer,
    PolicyTask,
    TaskQueue,
    aprogress,
    is_cancelled,
    keys,
    progress,
    task,
)
from components.services.queues.backend import RedisBackend
from components.services.queues.policy import doubled
from components.testing import redis_at, run_tasks
from tests.support.queues import claim_one, found, options, places

INFINITE = float("inf")


def as_told(error: BaseException, result: TaskResult) -> Any:
    """Return the first argument of the task, or raise it."""
    if isinstance(result.args[0], str) and result.args[0].startswith("raise"):
        raise LookupError("no idea")
    return result.args[0]


def by_name(name: str, other: Any = None) -> str:
    return name.casefold()


@task
def by_call(name: str, other: Any = None) -> tuple[str, Any]:
    return name, other


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


@task(unique=True)
def reindex(user_id: int, force: bool = False) -> None: ...


def with_a_session(function: Any) -> Any:
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function("session", *args, **kwargs)

    return called


@task(unique=True)
@with_a_session
def sync(session: str, user_id: int) -> None: ...


@task(unique=True)
@transaction.atomic
@lock("reindexing")
def reindex_alone(user_id: int, force: bool = False) -> None: ...


@task
@lock("noting")
def note_alone(text: str) -> None: ...


@task(unique=by_name)
def one_per_name(name: str, other: Any = None) -> None: ...


@task(on_commit=True)
def later(value: Any = None) -> Any:
    return value


@task(on_commit=True, unique=True)
def later_only_one(*args: Any) -> None: ...


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


def test_a_policy_is_on_the_task_and_stays_when_the_task_is_used_otherwise() -> None:
    assert isinstance(djangos_task(plain), PolicyTask)
    assert djangos_task(plain) == task(plain)
    changed = all_there_is.using(priority=9, queue_name="mail")
    assert changed == replace(all_there_is, priority=9, queue_name="mail")
    assert (changed.max_attempts, changed.lease, changed.unique) == (7, 60, by_name)


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("max_attempts", [0, 1.5, "3", True, 2_000_000_000], [1, 10**9]),
        ("backoff", [-1, "10", float("nan"), INFINITE, 1.1e9], [0, 1e9, by_name]),
        ("lease", [0.5, INFINITE, 1.1e9], [1, 1e9]),
        ("timeout", [0, 0.0009, "1"], [0.001, INFINITE]),
        ("result_ttl", [59, INFINITE, 1.1e9], [60, 1e9]),
        ("unique", ["key", None], [False, by_name]),
        ("concurrency", [0, -1, 1.5, "2", True, Concurrency(0)], [1, 10**9, Concurrency(1, by_name)]),
        (
            "expires",
            [0, -1, "10", INFINITE, timedelta(0)],
            [0.001, 1e9, timedelta(days=1), datetime.now(UTC)],
        ),
        ("sensitive", ["yes", None], [True]),
        ("on_commit", [1, "nope"], [None, False, True, "default"]),
    ],
)
def test_a_policy_that_cannot_be_is_refused_by_name(name: str, wrong: list[Any], right: list[Any]) -> None:
    for value in wrong:
        with pytest.raises(InvalidTask, match=rf"^tests\.queues\.declaring\.test_policy\.plain: {name} is "):
            task(**{name: value})(plain)
    for value in right:
        assert getattr(task(**{name: value})(plain), name) == value


def test_a_task_that_is_called_runs_here_and_what_other_libraries_call_it_is_named() -> None:
    assert by_call("a", other="b") == ("a", "b")
    assert places() == {}
    for name in ("delay", "apply_async", "send"):
        with pytest.raises(AttributeError, match=rf"by_call has no {name}\(\), .* enqueue\("):
            getattr(by_call, name)
    assert not hasattr(by_call, "subtask")


@pytest.mark.parametrize(
    "declared", [fail, all_there_is, coroutine.using(run_after=timedelta(hours=1)), lease.using(priority=3)]
)
def test_a_task_can_be_copied_and_pickled(declared: PolicyTask) -> None:
    assert deepcopy(declared) == declared
    if hasattr(Task, "_reconstruct"):  # the Django that lets tasks be pickled
        again = pickle.loads(pickle.dumps(declared))
        assert again == declared
        assert type(again) is PolicyTask


@pytest.mark.parametrize(("declared", "attempts"), [(stock, 2), (fail.using(priority=1), 3)])
def test_a_task_that_says_nothing_has_the_attempts_of_the_options(declared: Task, attempts: int) -> None:
    with options(max_attempts=2, backoff=0.0):
        declared.enqueue()
        assert [info.starts for info in run_tasks()] == list(range(1, attempts + 1))

    assert len(places()["dead"]) == 1


@pytest.mark.parametrize(
    ("attempt", "most"), [(1, 100), (2, 200), (6, 3_200), (7, 3_600), (61, 3_600), (10_000, 3_600)]
)
def test_a_delay_doubles_and_chance_takes_up_to_half(
    monkeypatch: pytest.MonkeyPatch, attempt: int, most: int
) -> None:
    monkeypatch.setattr("random.uniform", lambda least, most: (least, most))

    assert doubled(100, 3_600, attempt) == (most / 2, most)


@pytest.mark.parametrize(
    ("declared", "args", "least", "most"),
    [
        (fail_slowly, (), 50, 100),
        (stock, (), 250, 500),
        (fail_as_told, ("7.5",), 7.5, 7.5),
        (fail_as_told, (LONGEST,), LONGEST, LONGEST),
    ],
)
def test_a_delay_is_that_of_the_task_or_that_of_the_options(
    redis: Redis, declared: Task, args: Any, least: float, most: float
) -> None:
    with options(max_attempts=3, backoff=10_000, max_backoff=500):
        result = declared.enqueue(*args)
        run_tasks(limit=1)

    info = found(result.id)
    assert least <= (info.due_at - info.last_attempted_at).total_seconds() < most + 60


@pytest.mark.parametrize("said", [None, "soon", -1, [], LONGEST + 1, "nan", "raise"])
def test_a_function_that_says_none_or_nonsense_ends_it(said: Any, caplog: pytest.LogCaptureFixture) -> None:
    fail_as_told.enqueue(said)

    [info] = run_tasks()
    assert info.state == "dead"
    assert [error.exception_class_path for error in info.errors] == ["builtins.ValueError"]
    logged = [entry.levelno for entry in caplog.records if "The backoff" in entry.getMessage()]
    assert logged == ([] if said is None else [logging.ERROR])


def test_a_result_is_kept_as_long_as_its_task_says(redis: Redis) -> None:
    own, options_ = forget.enqueue(), lease.enqueue()
    run_tasks()

    assert 500_000 < redis.pttl(keys.BackendKeys("default").result(own.id)) <= 600_000
    assert redis.pttl(keys.BackendKeys("default").result(options_.id)) > 600_000


def test_the_same_call_is_stored_once_while_it_is_unfinished(heard: list[str]) -> None:
    first = only_one.enqueue(1, a=2, b=[3])
    again = only_one.using(priority=9).enqueue(1, b=(3,), a=2)
    assert again == first == only_one.get_result(first.id)
    assert places() == {"ready": [first.id]}

    claim_one(Consumer())
    running = only_one.enqueue(1, a=2, b=[3])
    assert (running.id, running.status) == (first.id, TaskResultStatus.RUNNING)
    assert heard == [first.id]
    batch = own_backend().enqueue_many(only_one, [([number % 2], {}) for number in range(4)])
    assert [result.args for result in batch] == [[0], [1], [0], [1]]
    assert [result.id for result in batch[2:]] == [result.id for result in batch[:2]] == heard[1:]


def test_a_call_is_the_same_however_its_arguments_are_given() -> None:
    first = reindex.enqueue(5)
    for args, kwargs in (((), {"user_id": 5}), ((5,), {"force": False}), ((5, False), {})):
        assert reindex.enqueue(*args, **kwargs).id == first.id
    assert len({reindex.enqueue(5, force=force).id for force in (True, 0, None)} | {first.id}) == 4
    assert reindex_alone.enqueue(5).id == reindex_alone.enqueue(user_id=5, force=False).id


def test_a_decorator_may_give_the_function_arguments_that_the_call_has_not() -> None:
    assert sync.enqueue(5).id == sync.enqueue(5).id != sync.enqueue(6).id
    assert [info.state for info in run_tasks()] == ["successful"] * 2
    with pytest.raises(TypeError, match="note_alone cannot be called"):  # @lock gives none
        note_alone.enqueue()


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((5, True, 3), {}), ((5,), {"user_id": 5}), ((5,), {"x": 1})]
)
def test_arguments_that_the_function_cannot_take_are_refused_and_never_tried_again(
    redis: Redis, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    for enqueue in (reindex.enqueue, async_to_sync(reindex.aenqueue)):
        with pytest.raises(TypeError, match=r"test_policy\.reindex cannot be called"):
            enqueue(*args, **kwargs)
    assert redis.dbsize() == 0
    TaskQueue().push(
        reindex.module_path, args, kwargs
    )  # by name, and where it was enqueued it may have had others
    with options(max_attempts=5):
        [info] = run_tasks()
    assert (info.state, info.starts, info.errors[0].kind) == ("dead", 1, "TypeError")


def test_a_function_of_the_arguments_says_what_is_the_same(redis: Redis) -> None:
    circle: list[Any] = []
    circle.append(circle)
    for declared, argument in ((one_per_name, 1), (only_one, {1}), (only_one, circle)):
        with pytest.raises((AttributeError, NotSerializable)):
            declared.enqueue(argument)
    assert redis.dbsize() == 0
    first = one_per_name.enqueue("Sword", 1)
    again = one_per_name.enqueue("SWORD", other=2)

    assert (again.id, again.args) == (first.id, ["Sword", 1])
    assert one_per_name.enqueue("shield").id != first.id


@in_transactions
def test_on_commit_it_is_stored_when_the_transaction_is_committed(heard: list[str]) -> None:
    with transaction.atomic():
        result = later.enqueue(1)
        assert (result.status, result.enqueued_at, result.args) == (TaskResultStatus.READY, None, [1])
        with pytest.raises(TaskResultDoesNotExist):
            later.get_result(result.id)
        many = own_backend().enqueue_many(later, [([number], {}) for number in range(3)])
        many.append(async_to_sync(replace(later, on_commit="default").aenqueue)())
        assert places() == {}
        assert heard == []

    assert heard == places()["ready"] == [each.id for each in (result, *many)]
    assert result == later.get_result(result.id)
    assert result.enqueued_at is not None
    at_once = later.enqueue()
    assert places()["ready"][-1] == at_once.id


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
def test_the_commit_of_the_database_that_it_names_counts(file: str) -> None:
    later_in_the_file = replace(later, on_commit=file)
    with transaction.atomic():
        at_once = later_in_the_file.enqueue()
        assert places() == {"ready": [at_once.id]}
    with transaction.atomic(using=file):
        second = later_in_the_file.enqueue()
        assert places() == {"ready": [at_once.id]}

    assert places() == {"ready": [at_once.id, second.id]}


@in_transactions
def test_where_redis_is_away_at_the_commit_data_stay_other_hooks_run_and_what_is_lost_is_logged(
    tmp_path: Path, redis: Redis, heard: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    hooks: list[str] = []
    with redis_at(f"unix://{tmp_path}/nothing.sock"), transaction.atomic():
        User.objects.create(username="jack")
        with pytest.raises(NotSerializable):  # before the commit
            later.enqueue({1})
        results = own_backend().enqueue_many(later, [([], {}), ([], {})])
        transaction.on_commit(lambda: hooks.append("another"))

    assert User.objects.filter(username="jack").exists()
    assert hooks == ["another"]
    [record] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert all(result.id in record.getMessage() for result in results)
    assert [result.enqueued_at for result in results] == [None, None]
    assert heard == []
    assert redis.dbsize() == 0


@in_transactions
def test_of_equal_calls_in_a_transaction_the_first_that_is_not_rolled_back_is_stored(
    heard: list[str],
) -> None:
    with transaction.atomic():
        with transaction.atomic():
            lost = later_only_one.enqueue()
            transaction.set_rollback(True)
        kept, again = later_only_one.enqueue(), later_only_one.enqueue()
        transaction.on_commit(enqueue_the_same_in_another_transaction)

    assert len({lost.id, kept.id, again.id}) == 3
    assert kept == later_only_one.get_result(kept.id)
    assert (again.enqueued_at, heard) == (None, [kept.id])


def enqueue_the_same_in_another_transaction() -> None:
    with transaction.atomic():
        later_only_one.enqueue()


@in_transactions
def test_the_backend_says_whether_tasks_wait_that_do_not_say_it(heard: list[str]) -> None:
    plain_task = djangos_task(plain)
    with options(on_commit=True), transaction.atomic():
        waiting, at_once = plain_task.enqueue(), replace(plain_task, on_commit=False).enqueue()
        awaited = async_to_sync(plain_task.aenqueue)()  # a coroutine is in no transaction
        assert heard == [at_once.id, awaited.id]
        for look in (plain_task.get_result, lambda id: own_backend().wait_for(id, wait=0)):
            for id in (waiting.id, UUID(waiting.id)):
                with pytest.raises(TaskResultDoesNotExist, match="transaction on 'default'"):
                    look(id)
    assert heard == [at_once.id, awaited.id, waiting.id]


@pytest.mark.django_db
def test_the_transaction_of_a_test_case_does_not_count_and_a_block_in_it_is_warned_of() -> None:
    at_once = later.enqueue()
    with TestCase.captureOnCommitCallbacks(execute=True), transaction.atomic():
        captured = later.enqueue()
    assert [info.id for info in run_tasks()] == [at_once.id, captured.id]
    with transaction.atomic():
        later.enqueue()
    with pytest.warns(UserWarning, match=r"test_policy\.later \(default\)"):
        assert run_tasks() == []


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


@in_transactions
@pytest.mark.parametrize("declared", [lease, later])
@pytest.mark.parametrize("delay", [timedelta(days=3, microseconds=7), timedelta(0), timedelta(days=-1)])
def test_a_timedelta_counts_from_when_it_is_stored(declared: Task, delay: timedelta) -> None:
    with transaction.atomic():
        result = declared.using(run_after=delay).enqueue()

    is_later = delay > timedelta(0)
    assert result.task.run_after == (result.enqueued_at + delay if is_later else None)
    assert result == declared.get_result(result.id)
    assert places() == {"delayed" if is_later else "ready": [result.id]}


@pytest.mark.parametrize(
    ("latest", "too_late"),
    [
        (datetime(2248, 1, 1, tzinfo=UTC), datetime(2248, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        (timedelta(seconds=LONGEST), timedelta(seconds=LONGEST, microseconds=1)),
        (timedelta(seconds=LONGEST), timedelta.max),
    ],
)
def test_an_instant_that_redis_cannot_hold_is_refused_at_once(latest: Any, too_late: Any) -> None:
    result = lease.using(run_after=latest).enqueue()

    assert result == lease.get_result(result.id)
    assert places() == {"delayed": [result.id]}
    with pytest.raises(InvalidTask, match="run_after"):
        lease.using(run_after=too_late)


@pytest.mark.parametrize(
    "wrong", [float("nan"), float("inf"), 10**400, 1.1e18, -1, "3", True, None, Decimal(1)]
)
def test_an_invalid_number_is_refused_where_it_is_given(redis: Redis, wrong: Any) -> None:
    with pytest.raises(ValueError, match="done="):
        progress(wrong, 10)
    with pytest.raises(ValueError, match="done="):
        asyncio.run(aprogress(wrong, 10))
    if wrong is not None:  # the total is unknown
        with pytest.raises(ValueError, match="total="):
            progress(1, wrong)
    for done, total in ((0, 0), (1, None), (7, 3), (1, 1e18)):  # outside of a worker it does nothing
        progress(done, total)
        asyncio.run(aprogress(done, total))
    assert is_cancelled() is False
    assert redis.dbsize() == 0
