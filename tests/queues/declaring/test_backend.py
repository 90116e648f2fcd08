"""RedisBackend against the contract of Django Tasks, on whichever of its two homes this Django has."""

import asyncio
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.apps import apps
from django.test.utils import modify_settings, override_settings
from django.utils import timezone
from redis import Redis

from components.exceptions import BodyTooLarge, RedisUnavailable, UnknownTask
from components.kit.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task,
    task_backends,
    task_enqueued,
)
from components.services.queues import keys
from components.services.queues.backend import RedisBackend, redis_aliases, resolve
from components.services.queues.report import loaded_tasks
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


def test_enqueue_returns_what_get_result_finds() -> None:
    before = timezone.now() - timedelta(seconds=1)

    result = send.enqueue(1, ("two", (b"text",)), three=(3, Urgency.HIGH))

    assert result == send.get_result(result.id) == backend().get_result(result_id=result.id)
    assert (result.status, result.is_finished, result.attempts) == (TaskResultStatus.READY, False, 0)
    assert (result.args, result.kwargs) == ([1, ["two", ["text"]]], {"three": [3, 50]})
    assert (result.task, result.backend) == (send, "default")
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert (result.errors, result.worker_ids) == ([], [])
    assert before < result.enqueued_at < before + timedelta(seconds=30)
    assert len(result.id) < 64
    done = tasks.aecho.enqueue({"a": [1, None, "ü"]})
    run_tasks()
    done.refresh()
    assert done == tasks.aecho.get_result(done.id)
    assert (done.status, done.return_value) == (TaskResultStatus.SUCCESSFUL, {"a": [1, None, "ü"]})
    assert (done.is_finished, done.attempts, done.errors) == (True, 1, [])
    assert done.enqueued_at <= done.started_at == done.last_attempted_at <= done.finished_at


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


@pytest.mark.parametrize(
    ("using", "expected"),
    [
        ({}, {"priority": 10, "queue_name": "mail", "run_after": None}),
        ({"priority": -100}, {"priority": -100}),
        ({"priority": Urgency.HIGH}, {"priority": 50}),
        ({"priority": 7.0}, {"priority": 7}),
        ({"queue_name": "any name { } %"}, {"queue_name": "any name { } %"}),
        ({"run_after": TOMORROW.astimezone(ZoneInfo("Asia/Kathmandu"))}, {"run_after": TOMORROW}),
    ],
)
def test_tell_stores_what_get_returns(using: dict[str, Any], expected: dict[str, Any]) -> None:
    result = send.using(**using).enqueue()

    found = backend().get_result(result.id)

    assert found == result
    assert {name: getattr(found.task, name) for name in expected} == expected


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


@pytest.mark.parametrize(
    "name",
    [
        *("tests.tasks.not_a_task", "tests.tasks.gates", "tests.nothing.echo", "os.system"),
        *("testsuite.tasks.echo", "tests.tasks.os.system", "..os.system", "echo", ""),
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


def test_what_no_installed_app_declares_is_no_task_by_any_name(
    stray: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownTask):
        resolve(f"{stray}.tasks.run")
    assert not {stray, f"{stray}.tasks"} & sys.modules.keys()
    with modify_settings(INSTALLED_APPS={"append": stray}):  # found, although it is not imported yet
        assert resolve(f"{stray}.tasks.run").module_path == f"{stray}.tasks.run"
    monkeypatch.setattr(tasks, "borrowed", sys.modules[f"{stray}.tasks"].run, raising=False)

    for name in (f"{stray}.tasks.run", "tests.tasks.borrowed"):
        with pytest.raises(UnknownTask, match="INSTALLED_APPS"):
            resolve(name)
    with pytest.raises(InvalidTask, match="TASK_MODULES"):
        sys.modules[f"{stray}.tasks"].run.enqueue()


@pytest.mark.parametrize("by", ["setting", "loading"])
def test_a_task_of_a_library_runs_if_all_processes_know_it(
    stray: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{stray}.tasks"
    if by == "loading":
        with monkeypatch.context() as patch:
            patch.setattr(apps, "ready", False)
            import_module(name)
    with override_settings(COMPONENTS={"TASK_MODULES": [name]} if by == "setting" else {}):
        run = resolve(f"{name}.run")
        run.enqueue()
        assert [info.return_value for info in run_tasks()] == ["ran"]
        assert run in loaded_tasks()


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("number", [1, 3])
def test_a_receiver_that_raises_does_not_make_a_stored_task_look_refused(
    heard: list[str], caplog: pytest.LogCaptureFixture, number: int, is_async: bool
) -> None:
    def raise_it(**kwargs: Any) -> None:
        raise RuntimeError("a receiver's own trouble")

    many = [([each], {}) for each in range(number)]
    task_enqueued.connect(raise_it)
    try:
        if number == 1:
            results = [asyncio.run(send.aenqueue(0)) if is_async else send.enqueue(0)]
        elif is_async:
            results = asyncio.run(backend().aenqueue_many(send, many))
        else:
            results = backend().enqueue_many(send, many)
    finally:
        task_enqueued.disconnect(raise_it)
    with redis_at("unix:///nowhere/redis.sock"), pytest.raises(RedisUnavailable):
        send.enqueue(1)

    assert places("mail") == {"ready": [result.id for result in results]}
    assert heard == [result.id for result in results]
    assert caplog.text.count("RuntimeError: a receiver's own trouble") == number


def test_each_alias_is_a_world_of_its_own() -> None:
    with aliases(default={"QUEUES": []}, mail={"QUEUES": ["mail"], "OPTIONS": {"max_body": 200}}):
        result = send.using(backend="mail").enqueue(1)

        assert redis_aliases() == ["default", "mail"]
        assert (result.backend, result.task.backend) == ("mail", "mail")
        assert backend("mail").get_result(result.id) == result
        with pytest.raises(TaskResultDoesNotExist):
            backend().get_result(result.id)
        assert [info.id for info in run_tasks("mail")] == [result.id]
        with pytest.raises(BodyTooLarge):
            send.using(backend="mail").enqueue("x" * 200)


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
    now = datetime.now(ZoneInfo("Asia/Kathmandu")).replace(tzinfo=None)
    for instant in (result.enqueued_at, result.started_at, result.last_attempted_at, result.finished_at):
        assert instant.tzinfo is None
        assert abs(instant - now) < timedelta(minutes=1)


@pytest.mark.usefixtures("local_time")
def test_without_time_zones_run_after_is_local_too() -> None:
    at = datetime(2100, 1, 2, 3, 4, 5, 678_901)
    for run_after in (at, at.replace(tzinfo=ZoneInfo("Asia/Kathmandu"))):
        result = send.using(run_after=run_after).enqueue()

        assert send.get_result(result.id) == result
        assert result.task.run_after == at
        info = backend().queue.get(result.id)
        assert info.run_after == at.replace(tzinfo=ZoneInfo("Asia/Kathmandu"))
    later = send.using(run_after=timedelta(hours=1)).enqueue()
    assert send.get_result(later.id).task.run_after == later.enqueued_at + timedelta(hours=1)
    with pytest.raises(InvalidTask, match="run_after"):
        send.using(run_after=datetime(2248, 1, 2))


@pytest.mark.parametrize(
    ("given", "id"),
    [
        *(({"QUEUES": queues}, None) for queues in ([], ["mail"], ("mail", "default"), {"mail"})),
        ({"QUEUES": "mail"}, "components.E003"),
        ({"OPTIONS": {"on_commit": "nope"}}, "components.E003"),
    ],
)
def test_what_is_wrong_about_an_alias_is_reported(given: dict[str, Any], id: str | None) -> None:
    with aliases(default={"OPTIONS": {"on_commit": False}, **given}):
        found = [message.id for message in backend().check()]

    assert found == ([id] if id else [])
