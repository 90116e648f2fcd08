"""The rate limits of tasks."""

from collections.abc import Callable

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.services.queues import TaskQueue, task
from components.services.queues.worker import execution
from components.services.rates import RateLimit
from components.testing import run_tasks
from tests import tasks
from tests.fixtures.worker import MakeWorker, counts, reaches
from tests.support.queues import come_due, found
from tests.support.rates import let_pass as let_calls_pass

SHOP = RateLimit("shop", "2/h")


@task(rate="2/h")
def limited(value: object = None) -> None:
    tasks.notes.append(value)


@task(rate="2/h", rate_key=lambda value, **more: value, concurrency=1)
def for_each(value: object) -> None:
    tasks.notes.append(value)


@task(rate=SHOP)
def shared() -> None: ...


def test_no_more_start_than_the_rate_and_others_go_on(
    make_worker: MakeWorker, start: Callable[..., object], redis: Redis
) -> None:
    start(make_worker(concurrency=4))
    ids = [limited.enqueue(number).id for number in range(5)]
    TaskQueue().push("tests.tasks.note", ["meanwhile"])

    assert reaches(successful=3, delayed=3)
    waiting = [info for info in map(found, ids) if info.state != "successful"]
    assert [(info.starts, info.errors) for info in waiting] == [(0, ())] * 3
    assert "meanwhile" in tasks.notes


def test_a_task_runs_when_its_turn_has_come(redis: Redis) -> None:
    ids = [limited.enqueue(number).id for number in range(3)]
    tasks.notes.clear()

    run_tasks()
    assert tasks.notes == [0, 1]
    let_calls_pass(redis, 3_601, f"task:{limited.module_path}")
    come_due(redis, ids[2])
    run_tasks()

    assert tasks.notes == [0, 1, 2]


def test_a_rate_holds_for_each_key_and_for_all_who_share_it(redis: Redis) -> None:
    tasks.notes.clear()
    for value in "aaabb":
        for_each.enqueue(value)
    shared.enqueue()
    SHOP.acquire()
    SHOP.acquire()

    run_tasks()

    assert tasks.notes == list("aabb")
    assert counts() == {"successful": 4, "delayed": 2}


def test_a_task_comes_early_and_waits_for_the_exact_moment(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited.enqueue(1)
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        let_calls_pass(redis, seconds, f"task:{limited.module_path}")

    for _ in range(2):
        RateLimit(f"task:{limited.module_path}", "2/h").acquire()
    let_calls_pass(redis, 3_600 - 0.03, f"task:{limited.module_path}")
    monkeypatch.setattr(execution, "_NEAR", 60)
    monkeypatch.setattr(execution.time, "sleep", sleep)

    run_tasks()

    assert (len(slept), counts()) == (1, {"successful": 1})


def test_without_an_answer_a_task_is_tried_again(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    result = limited.enqueue(1)

    def ask(*_args: object, **_more: object) -> float:
        raise RedisUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(RateLimit, "ask", ask)
        run_tasks()

    assert counts() == {"delayed": 1}
    assert found(result.id).starts == 0
