"""run_tasks() of components.testing: what a customer's test may rely on."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import User
from django.test.utils import override_settings
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from components.services.queues import NewTask, TaskQueue, keys
from components.services.queues.backend import RedisBackend
from components.testing import run_tasks
from tests import tasks
from tests.fixtures.worker import NOTE, counts, push
from tests.queues.worker import jobs
from tests.support.queues import come_due, options


def test_the_ready_tasks_run_in_order_and_the_answer_says_how_they_ended(backend: RedisBackend) -> None:
    first = tasks.echo.enqueue("first")
    fails = tasks.fail.enqueue("no swords left")
    last = tasks.aecho.enqueue("last")

    ended = run_tasks()

    assert [info.id for info in ended] == [first.id, fails.id, last.id]
    assert [info.state for info in ended] == ["successful", "dead", "successful"]
    assert [info.return_value for info in ended] == ["first", None, "last"]
    assert "ValueError: no swords left" in ended[1].errors[0].traceback


def test_a_task_that_is_to_be_tried_again_is_delayed_and_has_its_errors(
    backend: RedisBackend, redis: Redis
) -> None:
    with options(max_attempts=2):
        result = tasks.fail.enqueue("no swords left")
        (first,) = run_tasks()
        come_due(redis, result.id)
        (second,) = run_tasks()

    assert [first.state, second.state] == ["delayed", "dead"]
    assert [len(first.errors), len(second.errors)] == [1, 2]


def test_all_attempts_run_where_no_delay_is_between_them(backend: RedisBackend) -> None:
    jobs.succeed_at_last.enqueue()

    ended = run_tasks()

    assert [len(info.errors) for info in ended] == [1, 2, 2]
    assert [info.return_value for info in ended] == [None, None, 3]


def test_nothing_ready_is_nothing_run(backend: RedisBackend) -> None:
    tasks.echo.enqueue()
    run_tasks()

    assert run_tasks() == []


def test_tasks_enqueued_by_tasks_run_too(backend: RedisBackend) -> None:
    jobs.enqueue_another.enqueue(2)

    assert [info.return_value for info in run_tasks()] == [2, 1, 0]


def test_only_so_many_run_as_the_limit_says(backend: RedisBackend) -> None:
    push(NOTE, 5)

    assert len(run_tasks(limit=2)) == 2
    assert counts() == {"ready": 3, "successful": 2}
    assert run_tasks(limit=0) == []
    assert len(run_tasks(limit=9)) == 3


def test_higher_priorities_run_first_and_queues_by_name(backend: RedisBackend) -> None:
    for queue, priority in (("b", 9), ("a", 0), ("a", 5)):
        tasks.note.using(queue_name=queue, priority=priority).enqueue(f"{queue}{priority}")

    run_tasks()

    assert tasks.notes == ["a5", "a0", "b9"]


def test_delayed_tasks_run_when_they_are_due(backend: RedisBackend, redis: Redis) -> None:
    task_id = TaskQueue().push(NOTE, ["later"], delay=3600)
    assert run_tasks() == []

    come_due(redis, task_id)

    assert [info.id for info in run_tasks()] == [task_id]


@pytest.mark.slow
def test_when_more_are_due_than_one_step_moves_all_of_them_run(backend: RedisBackend, redis: Redis) -> None:
    new = [NewTask(name=NOTE, args=[number], delay=60, priority=number // 2_000) for number in range(2_001)]
    tasks = [info.id for info in backend.queue.push_many(new) if info]
    come_due(redis, *tasks)

    ended = run_tasks()

    assert len(ended) == 2_001
    assert ended[0].args == [2_000]


def test_a_paused_queue_stays_as_it_is(backend: RedisBackend) -> None:
    push(NOTE)
    backend.queue.pause("default")

    assert run_tasks() == []


def test_an_unreadable_task_is_reported_dead(backend: RedisBackend) -> None:
    push("no.such.task")

    (info,) = run_tasks()
    assert (info.state, info.errors[0].exception_class_path) == ("dead", "components.exceptions.UnknownTask")


def test_a_task_of_a_newer_release_is_left_alone(backend: RedisBackend, redis: Redis) -> None:
    (task_id,) = push(NOTE)
    redis.hset(keys.BackendKeys("default").tasks, task_id, b"2 whatever comes then")

    assert run_tasks() == []
    assert counts() == {"delayed": 1}


def test_a_keyboard_interrupt_ends_it_and_the_task_is_given_back(backend: RedisBackend) -> None:
    tasks.interrupt.enqueue()

    with pytest.raises(KeyboardInterrupt):
        run_tasks()

    assert counts() == {"ready": 1}


def test_no_worker_stays_behind(backend: RedisBackend, redis: Redis) -> None:
    push(NOTE)
    run_tasks()

    assert backend.queue.workers() == []
    assert not [key for key in redis.scan_iter() if b"worker" in key]


def test_other_aliases_have_their_own_tasks(backend: RedisBackend) -> None:
    both = {
        alias: {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []} for alias in ("default", "other")
    }
    with override_settings(TASKS=both):
        tasks.echo.enqueue("default")
        tasks.echo.using(backend="other").enqueue("other")

        assert [info.return_value for info in run_tasks("other")] == ["other"]
        assert [info.return_value for info in run_tasks()] == ["default"]


@pytest.mark.parametrize("task", [jobs.thread_name, jobs.thread_of_the_orm], ids=["sync", "async"])
def test_everything_runs_in_the_callers_thread(backend: RedisBackend, task) -> None:
    task.enqueue()

    assert run_tasks()[0].return_value == threading.current_thread().name


@pytest.mark.django_db
@pytest.mark.parametrize("task", [jobs.count_users, jobs.acount_users], ids=["sync", "async"])
def test_tasks_see_what_the_test_has_not_committed(backend: RedisBackend, task) -> None:
    User.objects.create(username="jack")
    task.enqueue()

    assert run_tasks()[0].return_value == 1


@pytest.mark.django_db
def test_the_queries_of_tasks_can_be_counted(
    backend: RedisBackend, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(2):
        jobs.count_users.enqueue()

    with django_assert_num_queries(3):
        User.objects.exists()
        run_tasks()
