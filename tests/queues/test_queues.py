"""The life of a task: pushed, claimed, and acked, renewed or given back with the token of the claim."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings
from redis import Redis

from components.services.queues import Consumer, TaskQueue, execute_later, keys
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    failed,
    found,
    hand_in,
    ids,
    places,
    push_many,
    server_time,
    step,
    succeeded,
)


def test_a_worker_gets_what_was_pushed(queue: TaskQueue) -> None:
    queue.push(ECHO, [1, None, {"a": [True, 2.5, "ü"]}], {"value": "x"}, queue="mail", priority=7)

    info = claim_one(Consumer(), "mail").read()

    assert (info.name, info.args, info.kwargs) == (ECHO, [1, None, {"a": [True, 2.5, "ü"]}], {"value": "x"})
    assert (info.queue, info.priority, info.state) == ("mail", 7, "running")


def test_the_books_call_pushes_into_the_same_queues(queue: TaskQueue) -> None:
    now, later = execute_later("mail", ECHO, ["a"]), execute_later("mail", ECHO, ["b"], delay=60)

    assert places("mail") == {"ready": [now], "delayed": [later]}
    info = found(later)
    assert info.args == ["b"]
    assert info.run_after == info.enqueued_at + timedelta(seconds=60)


@pytest.mark.parametrize("delay", [0, -1, -0.5, float("-inf")])
def test_the_books_call_runs_at_once_what_was_due_before(queue: TaskQueue, delay: float) -> None:
    task_id = execute_later("mail", ECHO, ["a"], delay=delay)

    assert places("mail") == {"ready": [task_id]}


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), "5"])
def test_the_books_call_refuses_what_is_no_number_of_seconds(queue: TaskQueue, delay: float) -> None:
    with pytest.raises(ValueError, match=ECHO):
        execute_later("mail", ECHO, ["a"], delay=delay)


def test_a_successful_task_is_a_result_and_nothing_else(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO, [4])
    consumer = Consumer()
    claimed = claim_one(consumer)

    hand_in(consumer, succeeded(claimed, {"answer": [42]}))

    assert places() == {"successful": [task_id]}
    info = found(task_id)
    assert (info.state, info.return_value, info.args) == ("successful", {"answer": [42]}, [4])
    of = keys.BackendKeys("default")
    assert not redis.exists(of.tasks, of.runs, of.errors)
    assert 0 < redis.pttl(keys.BackendKeys("default").result(task_id)) <= 86_400_000


def test_a_failed_task_rests_among_the_dead_with_its_error(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()

    hand_in(consumer, failed(claim_one(consumer), "out of stamps"))

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert [(error.exception_class_path, error.traceback) for error in info.errors] == [
        ("builtins.ValueError", "out of stamps")
    ]
    assert info.finished_at is not None
    assert info.finished_at >= info.enqueued_at


def test_a_task_ended_when_its_worker_says(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    ended_at = server_time() + timedelta(seconds=5)

    hand_in(consumer, failed(claimed)._replace(number=ended_at))

    info = found(task_id)
    assert info.finished_at == ended_at


def test_a_task_of_a_queue_that_is_not_asked_for_can_be_acked(queue: TaskQueue) -> None:
    mail, other = queue.push(ECHO, queue="mail"), queue.push(ECHO, queue="mail")
    consumer = Consumer()
    claimed = claim_one(consumer, "mail")

    answer = step(consumer, 5, ["default"], [succeeded(claimed)])

    assert answer.claimed == []
    assert places("mail") == {"ready": [other], "successful": [mail]}


def test_a_repeated_request_gets_the_same_answer_and_claims_nothing_new(queue: TaskQueue) -> None:
    first, second, third, *rest = push_many(5)
    consumer = Consumer()
    done, bad = claim(consumer, 2)
    request = consumer.request({"default": 1}, 1, [succeeded(done), failed(bad), failed(bad)])

    answers = [consumer.advance(request) for _ in range(3)]

    assert [ids(answer.claimed) for answer in answers] == [[third]] * 3
    assert [answer.claimed[0].starts for answer in answers] == [1, 1, 1]
    assert [answer.lost for answer in answers] == [[second]] * 3
    assert places() == {"ready": rest, "running": [third], "dead": [second], "successful": [first]}


def test_a_thousand_are_claimed_and_handed_in_by_one_request_and_more_by_the_next(queue: TaskQueue) -> None:
    pushed = push_many(1_200)
    consumer = Consumer()
    claimed = claim(consumer, 1_200)
    answer = consumer.advance(
        consumer.request({"default": 1_200}, 1_200, [succeeded(task) for task in claimed])
    )

    assert ids(claimed) == pushed[:1_000]
    assert ids(answer.claimed) == pushed[1_000:]
    assert (queue.stats("default").successful, queue.stats("default").running) == (1_000, 200)


def test_the_queues_of_another_alias_are_others(queue: TaskQueue) -> None:
    backend = {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}
    with override_settings(TASKS={"default": backend, "mail": backend}):
        task_id = TaskQueue("mail").push(ECHO)

        assert claim(Consumer()) == []
        assert queue.names() == []
        assert ids(claim(Consumer("mail"))) == [task_id]


def test_an_alias_that_is_not_in_the_settings_is_an_error(queue: TaskQueue) -> None:
    with pytest.raises(ImproperlyConfigured, match="'mail'"):
        TaskQueue("mail").push(ECHO)
