"""The chains of functions around enqueueing and around runs, and the metadata that travel with a task."""

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.test.utils import override_settings
from redis import Redis

from components.exceptions import BodyTooLarge, NotEnqueued, NotSerializable
from components.kit.compat import TaskResult
from components.services.queues import NewTask, TaskQueue, TaskRun, execute_later, keys, task
from components.services.queues.backend import RedisBackend
from components.services.queues.formats import read_task, write_errors
from components.services.queues.worker.inline import run_ready
from tests import tasks
from tests.fixtures.worker import MakeWorker
from tests.support.queues import found, options, places

HERE = "tests.queues.worker.test_middleware"
CallNext = Callable[[Iterable[NewTask]], Any]

#: What the functions below were called with, in order.
seen: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_seen(redis: Redis) -> None:
    seen.clear()


def outer(tasks: list[NewTask], call_next: CallNext) -> None:
    seen.append("outer")
    stored = call_next([replace(task, metadata={**task.metadata, "by": "outer"}) for task in tasks])
    seen.append([info and (info.id, info.metadata) for info in stored])


def inner(tasks: list[NewTask], call_next: CallNext) -> None:
    seen.append([(task.name, list(task.args), dict(task.metadata)) for task in tasks])
    call_next(replace(task, metadata={**task.metadata, "and": "inner"}) for task in tasks)


def refuse(tasks: list[NewTask], call_next: CallNext) -> None:
    raise PermissionError("not today")


def forget(tasks: list[NewTask], call_next: CallNext) -> None: ...


def too_much(tasks: list[NewTask], call_next: CallNext) -> None:
    call_next([replace(task, metadata={"a": "ä" * 1_000}) for task in tasks])


def halve(tasks: list[NewTask], call_next: CallNext) -> None:
    call_next(tasks[::2])


def numbers(tasks: list[NewTask], call_next: CallNext) -> None:
    call_next([replace(task, metadata={"a": 1}) for task in tasks])  # type: ignore[dict-item]


def move_twice(tasks: list[NewTask], call_next: CallNext) -> None:
    moved = [replace(task, queue="elsewhere", priority=7) for task in tasks]
    call_next(moved)
    call_next(moved)


def watch(run: TaskRun, call_next: Callable[[], Any]) -> None:
    seen.append(("begins", run.task.name, run.attempt, dict(run.metadata)))
    try:
        seen.append(("returns", call_next()))
    except BaseException as error:
        seen.append(("fails", type(error).__name__, run.retry_in(error) == run.retry_in(error)))
        raise


def leave(run: TaskRun, call_next: Callable[[], Any]) -> Any:
    run.metadata["attempts"] = run.metadata.get("attempts", "") + str(run.attempt)
    return call_next()


def leave_too_much(run: TaskRun, call_next: Callable[[], Any]) -> Any:
    run.metadata["much"] = "a" * 5_000
    return call_next()


def skip(run: TaskRun, call_next: Callable[[], Any]) -> str:
    return "ignored"


def fail_before(run: TaskRun, call_next: Callable[[], Any]) -> Any:
    raise LookupError("no tenant")


def suppress(run: TaskRun, call_next: Callable[[], Any]) -> Any:
    try:
        call_next()
    except ValueError:
        return


@task
async def acount() -> int:
    await asyncio.sleep(0)
    return 5


@task(timeout=0.01)
async def aendless() -> None:
    await asyncio.sleep(60)


@task(on_commit=True)
def committed() -> None: ...


def chain(*, enqueue: Iterable[str] = (), run: Iterable[str] = ()) -> Any:
    from django.conf import settings

    named = {"ENQUEUE_MIDDLEWARE": enqueue, "RUN_MIDDLEWARE": run}
    return override_settings(
        COMPONENTS={
            **settings.COMPONENTS,
            **{name: [f"{HERE}.{each}" for each in functions] for name, functions in named.items()},
        }
    )


BOTH = {"by": "outer", "and": "inner"}


def _many() -> list[TaskResult]:
    return tasks.echo.get_backend().enqueue_many(tasks.echo, [((5,), {})] * 3)


def _amany() -> list[TaskResult]:
    return asyncio.run(tasks.echo.get_backend().aenqueue_many(tasks.echo, [((5,), {})] * 3))


WAYS: dict[str, Callable[[], list[Any]]] = {
    "enqueue": lambda: [tasks.echo.enqueue(5)],
    "aenqueue": lambda: [asyncio.run(tasks.echo.aenqueue(5))],
    "delayed": lambda: [tasks.echo.using(run_after=timedelta(hours=1)).enqueue(5)],
    "many": _many,
    "amany": _amany,
    "push": lambda: [TaskQueue().push("tests.tasks.echo", [5])],
    "apush": lambda: [asyncio.run(TaskQueue().apush("tests.tasks.echo", [5]))],
    "execute_later": lambda: [execute_later("default", "tests.tasks.echo", [5])],
}


@pytest.mark.parametrize("way", WAYS)
def test_the_chain_is_around_every_way_to_enqueue(backend: RedisBackend, way: str) -> None:
    with chain(enqueue=["outer", "inner"]):
        ids = [getattr(result, "id", result) for result in WAYS[way]()]

    assert [found(task_id).metadata for task_id in ids] == [BOTH] * len(ids)
    given = [("tests.tasks.echo", [5], {"by": "outer"})] * len(ids)
    assert seen == ["outer", given, [(task_id, BOTH) for task_id in ids]]


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        ("refuse", PermissionError, "not today"),
        ("forget", NotEnqueued, "did not call"),
        ("halve", NotEnqueued, "other tasks"),
        ("too_much", BodyTooLarge, "6,008 bytes"),
        ("numbers", NotSerializable, "'a': 1"),
    ],
)
@pytest.mark.parametrize("way", [_amany, _many])
def test_a_middleware_that_fails_leaves_nothing_stored(
    redis: Redis, way: Callable[[], Any], function: str, error: type[Exception], said: str
) -> None:
    with chain(enqueue=["inner", function]), pytest.raises(error, match=said):
        way()

    assert redis.hlen(keys.BackendKeys("default").tasks) == 0


def test_a_middleware_can_send_a_task_elsewhere_and_stores_it_once(backend: RedisBackend) -> None:
    with chain(enqueue=["move_twice"]):
        result = tasks.echo.enqueue(5)

    assert places("elsewhere") == {"ready": [result.id]}
    assert found(result.id).priority == 7
    assert (result.task.queue_name, result.task.priority) == ("elsewhere", 7)


@pytest.mark.django_db(transaction=True)
def test_on_commit_the_chain_is_around_the_promise(backend: RedisBackend) -> None:
    with chain(enqueue=["outer"]):
        with transaction.atomic():
            result = committed.enqueue()
            assert seen == ["outer", [(result.id, {"by": "outer"})]]
            assert backend.queue.get(result.id) is None
        assert len(seen) == 2

    info = found(result.id)
    assert (info.metadata, info.enqueued_at) == ({"by": "outer"}, result.enqueued_at)


@pytest.mark.parametrize(
    ("name", "functions", "ends"),
    [
        ("tests.tasks.echo", ["watch", "watch"], ("returns", {"a": [1]})),
        (f"{HERE}.acount", ["watch"], ("returns", 5)),
        (f"{HERE}.aendless", ["watch"], ("fails", "TaskTimedOut", True)),
        ("tests.tasks.leave", ["watch"], ("fails", "SystemExit", True)),
        ("tests.tasks.give_back_a_set", ["watch"], ("fails", "TypeError", True)),
    ],
)
def test_the_chain_sees_ends(
    make_worker: MakeWorker, name: str, functions: list[str], ends: tuple[Any, ...]
) -> None:
    with options(), chain(run=functions):
        TaskQueue().push(name, [{"a": [1]}] if name.endswith("echo") else [])
        make_worker(burst=True).run()

    assert seen == [("begins", name, 1, {})] * len(functions) + [ends] * len(functions)


def test_what_a_failed_attempt_leaves_is_there_at_the_next(backend: RedisBackend) -> None:
    with options(max_attempts=3, backoff=0), chain(enqueue=["outer"], run=["leave", "watch"]):
        result = tasks.fail.enqueue()
        run_ready(backend)

        assert [each[-1] for each in seen if each[0] == "begins"] == [
            {"by": "outer", "attempts": attempts} for attempts in ("1", "12", "123")
        ]
        dead = found(result.id)
        assert (dead.state, dead.metadata) == ("dead", {"by": "outer", "attempts": "123"})

        backend.queue.resend("default", [result.id])  # keeps them, too
        assert (found(result.id).state, found(result.id).metadata) == ("ready", dead.metadata)
        done = tasks.echo.enqueue()
        run_ready(backend)
        assert found(done.id).metadata == {"by": "outer"}  # a success leaves them as they were


OLDER, NEWER = b'{"v": 1, "errors": [["E", "t"]]}', write_errors([], metadata='{"a": "100 %s"}').encode()


def test_too_large_metadata_are_not_left(backend: RedisBackend, caplog: pytest.LogCaptureFixture) -> None:
    with options(max_attempts=2, backoff=0), chain(enqueue=["outer"], run=["leave_too_much"]):
        tasks.fail.enqueue()
        *_, info = run_ready(backend)

    assert info.metadata == {"by": "outer"}
    assert "What a middleware left" in caplog.text


def test_a_chain_that_cannot_be_imported_stops_enqueueing_and_workers(make_worker: MakeWorker) -> None:
    with chain(enqueue=["nothing"], run=["nothing"]):
        with pytest.raises(ImproperlyConfigured, match="ENQUEUE_MIDDLEWARE"):
            tasks.echo.enqueue()
        with pytest.raises(ImproperlyConfigured, match="RUN_MIDDLEWARE"):
            make_worker()


@pytest.mark.parametrize(
    ("given", "errors", "read"),
    [
        ("", b"", {}),
        (',"metadata":{"a":"b","c":1},"newer":[]', b"", {"a": "b"}),
        (',"metadata":["a"]', b"", {}),
        (',"metadata":null', b"", {}),
        (',"metadata":{"a":"b"}', OLDER, {"a": "b"}),
        (',"metadata":{"a":"b"}', NEWER, {"a": "100 %s"}),
    ],
)
def test_a_record_of_any_release_is_read(given: str, errors: bytes, read: dict[str, str]) -> None:
    """Older releases write no metadata. In what a newer one writes, only texts count."""
    record = b'1 1 0 0 0 0 - default\n{"task":"a.b","args":[],"kwargs":{}%s}' % given.encode()

    assert read_task("1", "delayed", record, errors=errors).metadata == read
    assert json.loads(NEWER) | {"v": 1, "errors": []} == json.loads(NEWER)  # as an older release reads it


@pytest.mark.parametrize(
    ("function", "state", "error"),
    [("skip", "successful", ""), ("suppress", "successful", ""), ("fail_before", "dead", "no tenant")],
)
def test_a_middleware_can_let_a_task_succeed_or_fail(
    backend: RedisBackend, function: str, state: str, error: str
) -> None:
    tasks.fail.enqueue()
    with options(), chain(run=["watch", function]):
        [info] = run_ready(backend)

    assert (info.state, info.return_value) == (state, None)
    assert [error in each.traceback for each in info.errors] == [True] * bool(error)
    assert seen[-1] == (("fails", "LookupError", True) if error else ("returns", seen[-1][1]))
