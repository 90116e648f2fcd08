"""RedisBackend against the contract of Django Tasks, on whichever of its two homes this Django has."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.test.utils import modify_settings, override_settings
from django.utils import timezone
from redis import Redis

from components.exceptions import BodyTooLarge, NotSerializable, RedisUnavailable, UnknownFormat, UnknownTask
from components.kit.compat import (
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task,
    task_backends,
    task_enqueued,
)
from components.services.queues import keys
from components.services.queues.backend import RedisBackend, redis_aliases, resolve
from components.testing import redis_at, run_tasks
from tests import tasks
from tests.support.queues import places

BACKEND = "components.tasks.RedisBackend"
TOMORROW = datetime(2100, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)


class Urgency(IntEnum):
    HIGH = 50


@task(priority=10, queue_name="mail")
def send(*args: Any, **kwargs: Any) -> list[Any]:
    return [args, kwargs]


def plain() -> None:
    """Not declared as a task."""


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
        waited = await backend().await_for(result.id, wait=0.01)
        await result.arefresh()
        return [result, found, again, waited, backend().wait_for(result.id, wait=0.01)]

    result, *others = asyncio.run(through())

    assert others == [result] * 4
    assert places("mail") == {"ready": [result.id]}


def test_a_successful_task_has_a_return_value() -> None:
    result = tasks.aecho.enqueue({"a": [1, None, "ü"]})

    run_tasks()
    result.refresh()

    assert result == result.task.get_result(result.id)
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, {"a": [1, None, "ü"]})
    assert (result.is_finished, result.attempts, result.errors) == (True, 1, [])
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at


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


def test_tuples_become_lists_at_once() -> None:
    result = send.enqueue((1, (2,)), a=(3,), b=b"text")

    assert (result.args, result.kwargs) == ([[1, [2]]], {"a": [3], "b": "text"})


@pytest.mark.parametrize(
    ("args", "kwargs"), [([{1}], {}), ([], {"at": datetime(2026, 1, 1)}), ([object()], {}), ([{1: 2}], {})]
)
def test_arguments_that_are_not_json_are_a_type_error(
    redis: Redis, args: list[Any], kwargs: dict[str, Any]
) -> None:
    assert issubclass(NotSerializable, TypeError)
    with pytest.raises(NotSerializable):
        send.enqueue(*args, **kwargs)

    assert redis.dbsize() == 0


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"priority": 101}, "priority"),
        ({"priority": 1.5}, "priority"),
        ({"queue_name": "a\nb"}, "cannot be called"),
        ({"queue_name": "x" * 201}, "cannot be called"),
        ({"takes_context": True}, "context"),
    ],
)
def test_an_invalid_task_is_refused_at_declaration(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidTask, match=wrong):
        task(**given)(plain)


def test_queues_may_be_limited_to_some() -> None:
    with aliases(default={"QUEUES": ["mail"]}):
        with pytest.raises(InvalidTask, match="'default'"):
            task(plain)
        assert task(queue_name="mail")(plain).queue_name == "mail"
        with pytest.raises(InvalidTask, match="'other'"):
            send.using(queue_name="other")
        with pytest.raises(InvalidTask, match="'default'"):
            tasks.echo.enqueue()  # declared under other settings
        with pytest.raises(InvalidTask, match="'default'"):
            backend().enqueue_many(tasks.echo, [((), {})])


def test_a_task_is_checked_when_it_is_enqueued_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, checked = RedisBackend("default", {}), []
    monkeypatch.setattr(backend, "validate_task", checked.append)
    for _ in range(2):
        backend.enqueue(send, (), {})
        backend.enqueue(tasks.echo, (), {})
    assert checked == [send, tasks.echo]


@pytest.mark.parametrize(
    "name",
    [
        "tests.tasks.not_a_task",
        "tests.tasks.gates",
        "tests.nothing.echo",
        "os.system",
        "testsuite.tasks.echo",
        "tests.tasks.os.system",
        "..os.system",
        "echo",
        "",
    ],
)
def test_only_what_is_declared_as_a_task_is_one(name: str) -> None:
    with pytest.raises(UnknownTask, match=re.escape(repr(name))):
        resolve(name)


def test_what_does_not_exist_or_is_of_another_task_is_no_result(redis: Redis, tmp_path: Path) -> None:
    for result_id in ("nothing", None, 123, UUID(int=0)):
        with pytest.raises(TaskResultDoesNotExist):
            send.get_result(result_id)
    with pytest.raises(TaskResultDoesNotExist):
        asyncio.run(send.aget_result("nothing"))
    result = tasks.echo.enqueue()
    with pytest.raises(TaskResultMismatch):
        send.get_result(result.id)
    with pytest.raises(TaskResultMismatch):
        asyncio.run(send.aget_result(result.id))
    run_tasks()
    redis.delete(keys.BackendKeys("default").result(result.id))
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()
    with redis_at(f"unix://{tmp_path}/redis.sock"), pytest.raises(RedisUnavailable):
        send.get_result("any")


@pytest.mark.parametrize(
    ("record", "error"), [(b"2 whatever comes then", UnknownFormat), (b"nonsense", ValueError)]
)
def test_a_result_that_cannot_be_read_says_so(redis: Redis, record: bytes, error: type[Exception]) -> None:
    result = send.enqueue()
    redis.hset(keys.BackendKeys("default").tasks, result.id, record)

    with pytest.raises(error, match=result.id):
        send.get_result(result.id)


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


def test_what_no_installed_app_declares_is_neither_imported_nor_run_under_any_name(
    stray: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownTask):
        resolve(f"{stray}.tasks.run")
    assert not {stray, f"{stray}.tasks"} & sys.modules.keys()
    run = importlib.import_module(f"{stray}.tasks").run
    monkeypatch.setattr(tasks, "borrowed", run, raising=False)

    for name in (f"{stray}.tasks.run", "tests.tasks.borrowed"):
        with pytest.raises(UnknownTask, match="INSTALLED_APPS"):
            resolve(name)


def test_a_task_in_a_module_of_an_installed_app_that_is_not_imported_yet_is_found(stray: str) -> None:
    with modify_settings(INSTALLED_APPS={"append": stray}):
        assert resolve(f"{stray}.tasks.run").module_path == f"{stray}.tasks.run"


def test_the_signal_tells_of_what_was_stored_and_of_nothing_else(
    enqueued: list[tuple[Any, TaskResult]], tmp_path: Path
) -> None:
    result = send.enqueue(1)
    with pytest.raises(TypeError):
        send.enqueue({1})
    with redis_at(f"unix://{tmp_path}/redis.sock"), pytest.raises(RedisUnavailable):
        send.enqueue(1)

    assert enqueued == [(RedisBackend, result)]


async def _one_after_the_other() -> list[TaskResult]:
    return [await send.aenqueue(number) for number in range(3)]


@pytest.mark.parametrize(
    "enqueue",
    [
        lambda: [send.enqueue(number) for number in range(3)],
        lambda: asyncio.run(_one_after_the_other()),
        lambda: backend().enqueue_many(send, [([number], {}) for number in range(3)]),
        lambda: asyncio.run(backend().aenqueue_many(send, [([number], {}) for number in range(3)])),
    ],
    ids=["enqueue", "aenqueue", "enqueue_many", "aenqueue_many"],
)
def test_a_receiver_that_raises_does_not_make_a_stored_task_look_refused(
    enqueued: list[tuple[Any, TaskResult]],
    caplog: pytest.LogCaptureFixture,
    enqueue: Callable[[], list[TaskResult]],
) -> None:
    def raise_it(**kwargs: Any) -> None:
        raise RuntimeError("a receiver's own trouble")

    task_enqueued.connect(raise_it)
    try:
        results = enqueue()
    finally:
        task_enqueued.disconnect(raise_it)

    assert places("mail") == {"ready": [result.id for result in results]}
    assert [result for _sender, result in enqueued] == results
    assert caplog.text.count("RuntimeError: a receiver's own trouble") == 3


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
def test_without_time_zones_run_after_is_local_too() -> None:
    at = datetime(2100, 1, 2, 3, 4, 5, 678_901)
    for run_after in (at, at.replace(tzinfo=ZoneInfo("Asia/Kathmandu"))):
        result = send.using(run_after=run_after).enqueue()

        assert send.get_result(result.id) == result
        assert result.task.run_after == at
        info = backend().queue.get(result.id)
        assert info is not None
        assert info.run_after == at.replace(tzinfo=ZoneInfo("Asia/Kathmandu"))
    later = send.using(run_after=timedelta(hours=1)).enqueue()
    assert later.task.run_after == later.enqueued_at + timedelta(hours=1)
    assert send.get_result(later.id) == later
    with pytest.raises(InvalidTask, match="run_after"):
        send.using(run_after=datetime(2248, 1, 2))


@pytest.mark.parametrize("queues", [[], ["mail"], ("mail", "default"), {"mail"}, "mail"])
def test_only_queues_that_are_text_are_reported(queues: Any) -> None:
    with aliases(default={"QUEUES": queues}):
        found = [(message.id, message.is_serious()) for message in backend().check()]

    assert found == ([("components.E003", True)] if queues == "mail" else [])
