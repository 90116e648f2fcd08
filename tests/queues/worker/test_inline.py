"""run_tasks() of components.testing: what a customer's test may rely on."""

from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from components.services.queues import keys
from components.services.queues.backend import RedisBackend
from components.testing import run_tasks
from tests import tasks
from tests.fixtures.worker import NOTE, counts, push
from tests.queues.worker import jobs


def test_the_ready_tasks_run_in_order_and_the_answer_says_how_they_ended(
    backend: RedisBackend, redis: Redis
) -> None:
    first = tasks.echo.enqueue("first")
    fails = tasks.fail.enqueue("no swords left")
    last = tasks.aecho.enqueue("last")

    ended = run_tasks()

    assert [info.id for info in ended] == [first.id, fails.id, last.id]
    assert [info.state for info in ended] == ["successful", "dead", "successful"]
    assert [info.return_value for info in ended] == ["first", None, "last"]
    assert "ValueError: no swords left" in ended[1].errors[0].traceback
    assert run_tasks() == []
    assert not [key for key in redis.scan_iter() if b"worker" in key]


def test_attempts_without_a_delay_and_tasks_that_tasks_enqueue_run_too(backend: RedisBackend) -> None:
    jobs.succeed_at_last.enqueue()
    ended = run_tasks()
    assert [(info.state, len(info.errors), info.return_value) for info in ended] == [
        ("ready", 1, None),
        ("ready", 2, None),
        ("successful", 2, 3),
    ]

    jobs.enqueue_another.enqueue(2)
    assert [info.return_value for info in run_tasks()] == [2, 1, 0]


def test_only_so_many_run_as_the_limit_says(backend: RedisBackend) -> None:
    push(NOTE, 5)

    assert len(run_tasks(limit=2)) == 2
    assert counts() == {"ready": 3, "successful": 2}
    assert run_tasks(limit=0) == []
    assert len(run_tasks(limit=9)) == 3


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


@pytest.mark.parametrize("task", [jobs.thread_name, jobs.thread_of_the_orm], ids=["sync", "async"])
def test_everything_runs_in_the_callers_thread(backend: RedisBackend, task) -> None:
    task.enqueue()

    assert run_tasks()[0].return_value == threading.current_thread().name


@pytest.mark.django_db
def test_the_queries_of_tasks_can_be_counted(
    backend: RedisBackend, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(2):
        jobs.count_users.enqueue()

    with django_assert_num_queries(3):
        User.objects.exists()
        run_tasks()
