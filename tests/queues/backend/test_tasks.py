"""RedisBackend against the contract of Django Tasks, on whichever of its two homes this Django has."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.test.utils import modify_settings, override_settings
from django.utils import timezone
from redis import Redis

from components.exceptions import BodyTooLarge, NotSerializable, RedisUnavailable, UnknownFormat, UnknownTask
from components.kit.compat import (
    InvalidTask,
    Task,
    TaskContext,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    default_task_backend,
    task,
    task_backends,
    task_enqueued,
)
from components.services.queues import Consumer, TaskQueue, keys
from components.services.queues.backend import RedisBackend, redis_aliases, resolve
from components.testing import redis_at, run_tasks
from tests import tasks
from tests.support.queues import claim_one, come_due, end_lease, options, places

BACKEND = "components.tasks.RedisBackend"
TOMORROW = datetime(2100, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)


class Urgency(IntEnum):
    HIGH = 50


@task(priority=10, queue_name="mail")
def send(*args: Any, **kwargs: Any) -> list[Any]:
    return [args, kwargs]


@task(takes_context=True)
def own_id(context: TaskContext) -> str:
    return context.task_result.id


@task
def enqueue_another() -> str:
    return send.enqueue().id


def plain() -> None:
    """Not declared as a task."""


async def coroutine() -> None:
    """Not declared either."""


pytestmark = pytest.mark.usefixtures("redis")


def backend(alias: str = "default") -> RedisBackend:
    found = task_backends[alias]
    assert isinstance(found, RedisBackend)
    return found


def aliases(**settings: dict[str, Any]) -> Any:
    return override_settings(TASKS={name: {"BACKEND": BACKEND, **given} for name, given in settings.items()})


@pytest.fixture
def enqueued() -> Iterator[list[tuple[Any, TaskResult]]]:
    """What the signal task_enqueued told, with its sender."""
    heard: list[tuple[Any, TaskResult]] = []

    def hear(sender: Any, task_result: TaskResult, **kwargs: Any) -> None:
        heard.append((sender, task_result))

    task_enqueued.connect(hear)
    yield heard
    task_enqueued.disconnect(hear)


def test_the_backend_can_do_all_there_is() -> None:
    assert default_task_backend.alias == "default"
    flags = ("supports_defer", "supports_async_task", "supports_get_result", "supports_priority")
    assert [getattr(backend(), flag) for flag in flags] == [True] * 4


def test_enqueue_returns_what_get_result_finds() -> None:
    before = timezone.now() - timedelta(seconds=1)

    result = send.enqueue(1, "two", three=[3])

    assert result == send.get_result(result.id) == backend().get_result(result_id=result.id)
    assert (result.status, result.is_finished, result.attempts) == (TaskResultStatus.READY, False, 0)
    assert (result.args, result.kwargs) == ([1, "two"], {"three": [3]})
    assert (result.task, result.backend) == (send, "default")
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert (result.errors, result.worker_ids) == ([], [])
    assert before < result.enqueued_at < before + timedelta(seconds=30)
    assert len(result.id) < 64


def test_the_asynchronous_doors_lead_to_the_same() -> None:
    async def through() -> list[Any]:
        result = await send.aenqueue(1)
        found = await send.aget_result(result.id)
        again = await backend().aget_result(result.id)
        await result.arefresh()
        return [result, found, again]

    result, found, again = asyncio.run(through())

    assert result == found == again
    assert places("mail") == {"ready": [result.id]}


@pytest.mark.parametrize("name", ["echo", "aecho"])
def test_a_successful_task_has_a_return_value(name: str) -> None:
    result = getattr(tasks, name).enqueue({"a": [1, None, "ü"]})
    with pytest.raises(ValueError, match="not finished"):
        result.return_value  # noqa: B018

    run_tasks()
    result.refresh()

    assert result == result.task.get_result(result.id)
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, {"a": [1, None, "ü"]})
    assert (result.is_finished, result.attempts, result.errors) == (True, 1, [])
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at


def test_a_failed_task_has_its_error() -> None:
    result = tasks.fail.enqueue("out of stamps")

    run_tasks()
    result.refresh()

    assert result == tasks.fail.get_result(result.id)
    assert (result.status, result.is_finished) == (TaskResultStatus.FAILED, True)
    [error] = result.errors
    assert (error.exception_class_path, error.exception_class) == ("builtins.ValueError", ValueError)
    assert error.traceback.startswith("Traceback (most recent call last):")
    assert "ValueError: out of stamps" in error.traceback
    with pytest.raises(ValueError, match="failed"):
        result.return_value  # noqa: B018


def test_a_running_task_is_running() -> None:
    result = tasks.echo.enqueue(1)
    consumer = Consumer()
    claim_one(consumer)

    result.refresh()

    assert result == tasks.echo.get_result(result.id)
    assert (result.status, result.worker_ids) == (TaskResultStatus.RUNNING, [consumer.id])
    assert result.started_at == result.last_attempted_at
    assert result.finished_at is None


def test_a_task_that_died_with_its_workers_has_failed(redis: Redis) -> None:
    with options(max_crashes=1):
        result = tasks.echo.enqueue(1)
        claim_one(Consumer())
        end_lease(redis, result.id)
        run_tasks()

    result.refresh()

    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class.__name__ for error in result.errors] == ["WorkerDied"]


def test_an_error_whose_message_was_read_is_an_error_of_the_result(redis: Redis, queue: TaskQueue) -> None:
    result = tasks.echo.enqueue(1)
    queue.cancel("default", [result.id])

    assert queue.get(result.id).errors[-1].message
    assert [error.exception_class.__name__ for error in tasks.echo.get_result(result.id).errors] == [
        "TaskCancelled"
    ]


def test_a_task_knows_which_attempt_it_is(redis: Redis) -> None:
    result = tasks.attempt.enqueue()
    claim_one(Consumer())
    end_lease(redis, result.id)

    run_tasks()
    result.refresh()

    assert (result.return_value, result.attempts) == (2, 2)
    assert result.enqueued_at <= result.started_at < result.last_attempted_at <= result.finished_at


@pytest.mark.parametrize(
    ("using", "expected"),
    [
        ({}, {"priority": 10, "queue_name": "mail", "run_after": None}),
        ({"priority": 0}, {"priority": 0}),
        ({"priority": -100}, {"priority": -100}),
        ({"priority": Urgency.HIGH}, {"priority": 50}),
        ({"priority": 7.0}, {"priority": 7}),
        ({"queue_name": "any name { } %"}, {"queue_name": "any name { } %"}),
        ({"run_after": TOMORROW}, {"run_after": TOMORROW}),
        ({"run_after": TOMORROW.astimezone(ZoneInfo("Asia/Kathmandu"))}, {"run_after": TOMORROW}),
    ],
)
def test_tell_stores_what_get_returns(using: dict[str, Any], expected: dict[str, Any]) -> None:
    result = send.using(**using).enqueue()

    found = backend().get_result(result.id)

    assert found == result
    assert {name: getattr(found.task, name) for name in expected} == expected


@pytest.mark.parametrize("state", ["ready", "running", "successful"])
def test_results_are_equal_to_the_microsecond_in_every_state(redis: Redis, state: str) -> None:
    result = send.using(run_after=TOMORROW, priority=3).enqueue(1)
    come_due(redis, result.id, queue="mail")
    if state == "running":
        claim_one(Consumer(), "mail")
    if state == "successful":
        run_tasks()

    result.refresh()

    assert result == send.get_result(result.id)
    assert result.task.run_after == TOMORROW
    assert result.status == TaskResultStatus[state.upper()]


def test_a_delayed_task_is_ready_in_djangos_words_and_does_not_run(redis: Redis) -> None:
    result = tasks.echo.using(run_after=TOMORROW).enqueue(1)

    assert run_tasks() == []
    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert places() == {"delayed": [result.id]}
    come_due(redis, result.id)
    assert [info.id for info in run_tasks()] == [result.id]


def test_run_after_in_the_past_means_now() -> None:
    result = tasks.echo.using(run_after=datetime(1999, 1, 1, tzinfo=UTC)).enqueue(1)

    assert [info.id for info in run_tasks()] == [result.id]


def test_higher_priorities_run_first() -> None:
    low, high = (tasks.echo.using(priority=at).enqueue(at) for at in (-5, 5))
    normal = tasks.echo.enqueue(0)

    assert [info.id for info in run_tasks()] == [high.id, normal.id, low.id]


def test_tuples_become_lists_at_once() -> None:
    result = send.enqueue((1, (2,)), a=(3,), b=b"text")

    assert (result.args, result.kwargs) == ([[1, [2]]], {"a": [3], "b": "text"})


@pytest.mark.parametrize(
    ("args", "kwargs"), [([{1}], {}), ([], {"at": datetime(2026, 1, 1)}), ([object()], {}), ([{1: 2}], {})]
)
def test_arguments_that_are_not_json_are_a_type_error(
    redis: Redis, args: list[Any], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"^Unsupported type: ") as refused:
        send.enqueue(*args, **kwargs)

    assert isinstance(refused.value, NotSerializable)
    assert redis.dbsize() == 0


def test_too_much_is_refused_at_once(redis: Redis) -> None:
    with options(max_body=100), pytest.raises(BodyTooLarge, match=r"args\[0\]"):
        send.enqueue("x" * 100)

    assert redis.dbsize() == 0


@pytest.mark.parametrize(
    ("function", "given", "message"),
    [
        (plain, {"priority": 101}, "priority"),
        (plain, {"priority": 1.5}, "priority"),
        (plain, {"queue_name": "a\nb"}, r"cannot be called 'a\\nb'"),
        (plain, {"queue_name": "x" * 201}, "1 to 200 printable characters"),
        (plain, {"takes_context": True}, "context"),
    ],
)
def test_an_invalid_task_is_refused_at_declaration(
    function: Any, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidTask, match=message):
        task(**given)(function)


def test_a_function_inside_another_cannot_be_a_task() -> None:
    def inside() -> None: ...

    with pytest.raises(InvalidTask, match="module level"):
        task(inside)


def test_coroutines_can_be_tasks() -> None:
    assert task(coroutine).func is coroutine


def test_queues_may_be_limited_to_some() -> None:
    with aliases(default={"QUEUES": ["mail"]}):
        with pytest.raises(InvalidTask, match="'default'"):
            task(plain)
        assert task(queue_name="mail")(plain).queue_name == "mail"
        with pytest.raises(InvalidTask, match="'other'"):
            send.using(queue_name="other")


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(InvalidTask, match="aware"):
        send.using(run_after=datetime(2027, 1, 1))


def test_settings_that_have_changed_count_when_a_task_is_enqueued(redis: Redis) -> None:
    with aliases(default={"QUEUES": ["default"]}), pytest.raises(InvalidTask, match="'mail'"):
        send.enqueue()
    with aliases(default={"QUEUES": ["default"]}), pytest.raises(InvalidTask, match="'mail'"):
        asyncio.run(send.aenqueue())

    assert redis.dbsize() == 0


def test_a_task_is_checked_when_it_is_enqueued_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, checked = RedisBackend("default", {}), []
    monkeypatch.setattr(backend, "validate_task", checked.append)
    for _ in range(2):
        backend.enqueue(send, (), {})
        backend.enqueue(own_id, (), {})
    assert checked == [send, own_id]


def test_a_prefix_that_has_changed_counts_when_a_task_is_enqueued(redis: Redis) -> None:
    send.enqueue()
    with override_settings(COMPONENTS={"PREFIX": "staging"}):
        staged = send.enqueue()
        assert redis.hkeys(keys.BackendKeys("default").tasks) == [staged.id.encode()]


def test_stored_tasks_are_readable_and_run_when_their_queue_is_no_longer_allowed() -> None:
    result = send.enqueue(1)

    with aliases(default={"QUEUES": ["default"]}):
        result.refresh()
        assert result == send.get_result(result.id)
        assert [info.state for info in run_tasks()] == ["successful"]
        with pytest.raises(InvalidTask, match="'mail'"):
            result.task.enqueue()


@pytest.mark.parametrize("result_id", [None, 123, UUID(int=0)])
def test_a_malformed_id_does_not_exist(result_id: Any) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        send.get_result(result_id)


def test_a_result_that_never_was_does_not_exist() -> None:
    with pytest.raises(TaskResultDoesNotExist):
        send.get_result("nothing")
    with pytest.raises(TaskResultDoesNotExist):
        asyncio.run(send.aget_result("nothing"))


def test_a_result_that_has_expired_does_not_exist(redis: Redis) -> None:
    result = tasks.echo.enqueue()
    run_tasks()
    redis.delete(keys.BackendKeys("default").result(result.id))

    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


def test_a_result_of_another_task_is_a_mismatch() -> None:
    result = tasks.echo.enqueue()

    with pytest.raises(TaskResultMismatch, match=r"tests\.tasks\.echo"):
        send.get_result(result.id)
    with pytest.raises(TaskResultMismatch):
        asyncio.run(send.aget_result(result.id))


def test_a_result_of_a_task_that_is_no_longer_declared_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    result = tasks.echo.enqueue()
    monkeypatch.delattr(tasks, "echo")

    with pytest.raises(UnknownTask, match=r"'tests\.tasks\.echo'"):
        backend().get_result(result.id)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tests.tasks.not_a_task", "is function, not a task: declare it with @task"),
        ("tests.tasks.gates", "No task 'tests.tasks.gates' can be imported"),
        ("tests.nothing.echo", "No task 'tests.nothing.echo' can be imported"),
        ("os.system", "No task 'os.system' can be imported: no app in INSTALLED_APPS contains a module 'os'"),
        ("testsuite.tasks.echo", "no app in INSTALLED_APPS contains a module 'testsuite.tasks'"),
        ("tests.tasks.os.system", "No task 'tests.tasks.os.system' can be imported"),
        ("..os.system", "no app in INSTALLED_APPS contains"),
        ("echo", "No task 'echo' can be imported"),
        ("", "No task ''"),
    ],
)
def test_only_what_is_declared_as_a_task_is_one(name: str, message: str) -> None:
    with pytest.raises(UnknownTask, match=message):
        resolve(name)


@pytest.fixture
def stray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a package on the path with a module `tasks`, which declares the task `run`."""
    name = f"stray_{tmp_path.name.replace('-', '_')}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "tasks.py").write_text(
        "from components.kit.compat import task\n\n@task\ndef run():\n    return 'ran'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    for module in (name, f"{name}.tasks"):
        sys.modules.pop(module, None)


def test_a_module_outside_of_the_installed_apps_is_not_imported(stray: str) -> None:
    with pytest.raises(UnknownTask, match=f"no app in INSTALLED_APPS contains a module '{stray}.tasks'"):
        resolve(f"{stray}.tasks.run")

    assert not {stray, f"{stray}.tasks"} & sys.modules.keys()


def test_a_task_that_no_installed_app_declares_is_not_run_under_any_name(
    stray: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = importlib.import_module(f"{stray}.tasks").run
    monkeypatch.setattr(tasks, "borrowed", run, raising=False)

    for name in (f"{stray}.tasks.run", "tests.tasks.borrowed"):
        with pytest.raises(UnknownTask, match="INSTALLED_APPS"):
            resolve(name)


def test_a_task_in_a_module_of_an_installed_app_that_is_not_imported_yet_is_found(stray: str) -> None:
    with modify_settings(INSTALLED_APPS={"append": stray}):
        assert resolve(f"{stray}.tasks.run").module_path == f"{stray}.tasks.run"


def test_a_declared_task_is_found_by_its_path() -> None:
    assert resolve("tests.tasks.echo") is tasks.echo
    assert isinstance(tasks.echo, Task)


def test_the_signal_tells_of_what_was_stored(enqueued: list[tuple[Any, TaskResult]]) -> None:
    result = send.enqueue(1)
    with pytest.raises(TypeError):
        send.enqueue({1})

    assert enqueued == [(RedisBackend, result)]


def test_no_signal_tells_of_what_was_not_stored(
    enqueued: list[tuple[Any, TaskResult]], tmp_path: Path
) -> None:
    with redis_at(f"unix://{tmp_path}/redis.sock"), pytest.raises(RedisUnavailable):
        send.enqueue(1)

    assert enqueued == []


def test_many_calls_are_stored_as_one(redis: Redis, enqueued: list[tuple[Any, TaskResult]]) -> None:
    results = backend().enqueue_many(send, [([number], {"a": number}) for number in range(3)])

    assert [result.args for result in results] == [[0], [1], [2]]
    assert results == [send.get_result(result.id) for result in results]
    assert enqueued == [(RedisBackend, result) for result in results]
    with pytest.raises(NotSerializable):
        backend().enqueue_many(send, [([1], {}), ([{1}], {})])
    assert TaskQueue().stats("mail").ready == 3


@pytest.mark.django_db
def test_a_task_is_stored_when_it_is_enqueued_and_not_on_commit() -> None:
    with transaction.atomic():
        result = send.enqueue()

        assert places("mail") == {"ready": [result.id]}


def test_each_alias_is_a_world_of_its_own() -> None:
    with aliases(default={"QUEUES": []}, mail={"QUEUES": ["mail"], "OPTIONS": {"max_body": 200}}):
        result = send.using(backend="mail").enqueue(1)

        assert (result.backend, result.task.backend) == ("mail", "mail")
        assert backend("mail").get_result(result.id) == result
        with pytest.raises(TaskResultDoesNotExist):
            backend().get_result(result.id)
        assert [info.id for info in run_tasks("mail")] == [result.id]
        with pytest.raises(BodyTooLarge):
            send.using(backend="mail").enqueue("x" * 200)


def test_the_aliases_on_redis_are_those_of_this_backend() -> None:
    module = Task.__module__.rpartition(".")[0]
    with override_settings(
        TASKS={
            "default": {"BACKEND": BACKEND},
            "now": {"BACKEND": f"{module}.backends.immediate.ImmediateBackend"},
            "mail": {"BACKEND": BACKEND},
        }
    ):
        assert redis_aliases() == ["default", "mail"]


@pytest.fixture
def local_time() -> Iterator[None]:
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Kathmandu"):
        timezone.get_default_timezone.cache_clear()
        yield
    timezone.get_default_timezone.cache_clear()


@pytest.mark.usefixtures("local_time")
def test_without_time_zones_instants_are_naive_and_local() -> None:
    result = tasks.echo.enqueue(1)
    assert result == tasks.echo.get_result(result.id)

    run_tasks()
    result.refresh()

    assert result == tasks.echo.get_result(result.id)
    for instant in (result.enqueued_at, result.started_at, result.last_attempted_at, result.finished_at):
        assert instant.tzinfo is None
        assert abs(instant - datetime.now(ZoneInfo("Asia/Kathmandu")).replace(tzinfo=None)) < timedelta(
            minutes=1
        )


@pytest.mark.usefixtures("local_time")
def test_without_time_zones_a_naive_instant_is_local() -> None:
    at = datetime(2100, 1, 2, 3, 4, 5, 678_901)

    result = send.using(run_after=at).enqueue()

    assert send.get_result(result.id) == result
    assert send.get_result(result.id).task.run_after == at
    info = backend().queue.get(result.id)
    assert info is not None
    assert info.run_after == at.replace(tzinfo=ZoneInfo("Asia/Kathmandu"))


def test_a_task_that_asks_for_it_gets_its_result() -> None:
    result = own_id.enqueue()

    run_tasks()
    result.refresh()

    assert result.return_value == result.id


def test_a_task_can_enqueue_others() -> None:
    result = enqueue_another.enqueue()

    ended = run_tasks()

    assert [info.name for info in ended] == [enqueue_another.module_path, send.module_path]
    assert ended[0].id == result.id


def test_a_receiver_that_raises_does_not_make_a_stored_task_look_refused(
    enqueued: list[tuple[Any, TaskResult]], caplog: pytest.LogCaptureFixture
) -> None:
    def raise_it(**kwargs: Any) -> None:
        raise RuntimeError("a receiver's own trouble")

    task_enqueued.connect(raise_it)
    try:
        results = backend().enqueue_many(send, [([number], {}) for number in range(3)])
    finally:
        task_enqueued.disconnect(raise_it)

    assert places("mail") == {"ready": [result.id for result in results]}
    assert [result for _sender, result in enqueued] == results
    assert caplog.text.count("RuntimeError: a receiver's own trouble") == 3


def test_queues_that_are_text_are_reported() -> None:
    with aliases(default={"QUEUES": "mail"}):
        [message] = backend().check()

    assert (message.id, message.is_serious()) == ("components.E003", True)
    assert message.msg == "TASKS['default'][\"QUEUES\"] is 'mail'; it must be a list of names, or [] for any."


@pytest.mark.parametrize("queues", [[], ["mail"], ("mail", "default"), {"mail"}])
def test_queues_that_are_a_list_are_not(queues: Any) -> None:
    with aliases(default={"QUEUES": queues}):
        assert backend().check() == []


def test_a_result_that_a_newer_release_wrote_says_so(redis: Redis) -> None:
    result = send.enqueue()
    redis.hset(keys.BackendKeys("default").tasks, result.id, b"2 whatever comes then")

    with pytest.raises(UnknownFormat, match="a newer release has to run it"):
        send.get_result(result.id)


def test_a_result_that_is_no_task_says_so(redis: Redis) -> None:
    result = send.enqueue()
    redis.hset(keys.BackendKeys("default").tasks, result.id, b"nonsense")

    with pytest.raises(ValueError, match="has no readable record"):
        send.get_result(result.id)


def test_without_redis_there_is_no_result(tmp_path: Path) -> None:
    with redis_at(f"unix://{tmp_path}/redis.sock"), pytest.raises(RedisUnavailable):
        send.get_result("any")


@pytest.mark.usefixtures("local_time")
def test_without_time_zones_an_aware_instant_comes_back_naive_and_local() -> None:
    result = send.using(run_after=TOMORROW).enqueue()

    local = TOMORROW.astimezone(ZoneInfo("Asia/Kathmandu")).replace(tzinfo=None)
    assert result.task.run_after == local
    assert send.get_result(result.id) == result


@pytest.mark.usefixtures("local_time")
def test_without_time_zones_a_naive_instant_may_be_too_late_as_well() -> None:
    with pytest.raises(InvalidTask, match="at most 2248"):
        send.using(run_after=datetime(2248, 1, 2))


@pytest.mark.usefixtures("local_time")
def test_without_time_zones_a_timedelta_counts_from_when_it_was_enqueued() -> None:
    result = send.using(run_after=timedelta(hours=1)).enqueue()

    assert result.task.run_after == result.enqueued_at + timedelta(hours=1)
    assert send.get_result(result.id) == result
