"""The life of a task: pushed, claimed, and acked, renewed or given back with the token of the claim."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings
from redis import Redis

from components import keys
from components.services.queues import Consumer, Finished, TaskQueue, execute_later
from tests.support.queues import (
    ECHO,
    LONG_AGO,
    claim,
    claim_one,
    come_due,
    end_lease,
    failed,
    hand_in,
    ids,
    options,
    places,
    push_many,
    step,
    succeeded,
)


@pytest.fixture
def queue(redis: Redis) -> TaskQueue:
    return TaskQueue()


def test_a_pushed_task_is_claimed_once(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO, [1], {"value": 2})

    first, second = claim(Consumer()), claim(Consumer())

    assert ids(first) == [task_id]
    assert second == []


def test_a_worker_gets_what_was_pushed(queue: TaskQueue) -> None:
    queue.push(ECHO, [1, None, {"a": [True, 2.5, "ü"]}], {"value": "x"}, queue="mail", priority=7)

    info = claim_one(Consumer(), "mail").read()

    assert (info.name, info.args, info.kwargs) == (ECHO, [1, None, {"a": [True, 2.5, "ü"]}], {"value": "x"})
    assert (info.queue, info.priority, info.state) == ("mail", 7, "running")


def test_the_books_call_pushes_into_the_same_queues(queue: TaskQueue) -> None:
    now, later = execute_later("mail", ECHO, ["a"]), execute_later("mail", ECHO, ["b"], delay=60)

    assert places("mail") == {"ready": [now], "delayed": [later]}
    info = queue.get(later)
    assert info is not None
    assert info.args == ["b"]
    assert info.run_after == info.enqueued_at + timedelta(seconds=60)


def test_a_successful_task_is_a_result_and_nothing_else(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO, [4])
    consumer = Consumer()
    claimed = claim_one(consumer)

    hand_in(consumer, succeeded(claimed, {"answer": [42]}))

    assert places() == {"successful": [task_id]}
    info = queue.get(task_id)
    assert info is not None
    assert (info.state, info.return_value, info.args) == ("successful", {"answer": [42]}, [4])
    for part in (keys.queue_tasks, keys.queue_runs, keys.queue_errors):
        assert not redis.exists(part("default"))
    assert 0 < redis.pttl(keys.queue_result("default", task_id)) <= 86_400_000


def test_a_failed_task_rests_among_the_dead_with_its_error(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()

    hand_in(consumer, failed(claim_one(consumer), "out of stamps"))

    assert places() == {"dead": [task_id]}
    info = queue.get(task_id)
    assert info is not None
    assert [(error.exception_class_path, error.traceback) for error in info.errors] == [
        ("builtins.ValueError", "out of stamps")
    ]
    assert info.finished_at is not None
    assert info.finished_at >= info.enqueued_at


def test_one_step_acks_and_claims(queue: TaskQueue) -> None:
    first, second = queue.push(ECHO), queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)

    answer = step(consumer, finished=[succeeded(claimed)])

    assert ids(answer.claimed) == [second]
    assert places() == {"running": [second], "successful": [first]}


def test_a_task_of_a_queue_that_is_not_asked_for_can_be_acked(queue: TaskQueue) -> None:
    mail, other = queue.push(ECHO, queue="mail"), queue.push(ECHO, queue="mail")
    consumer = Consumer()
    claimed = claim_one(consumer, "mail")

    answer = step(consumer, 5, ["default"], [succeeded(claimed)])

    assert answer.claimed == []
    assert places("mail") == {"ready": [other], "successful": [mail]}


@pytest.mark.parametrize("outcome", [succeeded, failed])
def test_a_late_finisher_changes_nothing(queue: TaskQueue, redis: Redis, outcome: type[Finished]) -> None:
    task_id = queue.push(ECHO)
    slow, fast = Consumer(), Consumer()
    late = claim_one(slow)
    end_lease(redis, task_id)
    taken_over = claim_one(fast)

    lost = hand_in(slow, outcome(late)).lost

    assert lost == [task_id]
    assert places() == {"running": [task_id]}
    hand_in(fast, succeeded(taken_over, "fast"))
    assert hand_in(slow, outcome(late)).lost == [task_id]
    info = queue.get(task_id)
    assert info is not None
    assert info.return_value == "fast"


def test_who_is_late_and_not_yet_replaced_may_still_hand_in(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    end_lease(redis, task_id)

    lost = hand_in(consumer, succeeded(claimed)).lost

    assert lost == []
    assert places() == {"successful": [task_id]}


def test_the_same_ack_counts_once(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)

    lost = hand_in(consumer, succeeded(claimed, 1), succeeded(claimed, 2), failed(claimed)).lost

    assert lost == [task_id, task_id]
    info = queue.get(task_id)
    assert info is not None
    assert info.return_value == 1
    assert places() == {"successful": [task_id]}


def test_an_abandoned_task_finds_its_old_place(queue: TaskQueue, redis: Redis) -> None:
    first, second, third = push_many(3)
    assert ids(claim(Consumer(), 2)) == [first, second]
    end_lease(redis, second, first)

    claimed = claim(Consumer(), 3)

    assert ids(claimed) == [first, second, third]
    assert [task.starts for task in claimed] == [2, 2, 1]


def test_an_abandoned_task_remembers_who_started_it(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    workers = [Consumer(), Consumer()]
    started = []
    for worker in workers:
        started.append(claim_one(worker).read().last_attempted_at)
        end_lease(redis, task_id)

    info = queue.get(task_id)

    assert info is not None
    assert info.worker_ids == tuple(worker.id for worker in workers)
    assert (info.started_at, info.last_attempted_at) == tuple(started)


@pytest.mark.parametrize("max_starts", [1, 3])
def test_a_task_that_kills_its_workers_dies(queue: TaskQueue, redis: Redis, max_starts: int) -> None:
    with options(max_starts=max_starts):
        task_id = queue.push(ECHO)
        for start in range(1, max_starts + 1):
            assert claim_one(Consumer()).starts == start
            end_lease(redis, task_id)

        assert claim(Consumer()) == []

    assert places() == {"dead": [task_id]}
    info = queue.get(task_id)
    assert info is not None
    assert [error.exception_class_path for error in info.errors] == ["components.exceptions.WorkerDied"]
    assert len(info.worker_ids) == max_starts


def test_what_is_given_back_finds_its_old_place_and_the_start_does_not_count(queue: TaskQueue) -> None:
    first, second, third = push_many(3)
    consumer = Consumer()

    released = consumer.release(claim(consumer, 2))

    assert released == 2
    assert places() == {"ready": [first, second, third]}
    info = queue.get(first)
    assert info is not None
    assert (info.worker_ids, info.started_at, info.last_attempted_at) == ((), None, None)
    assert [task.starts for task in claim(Consumer(), 3)] == [1, 1, 1]


def test_giving_back_leaves_the_starts_of_others(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    dead, careful = Consumer(), Consumer()
    claim_one(dead)
    end_lease(redis, task_id)

    careful.release(claim(careful))

    info = queue.get(task_id)
    assert info is not None
    assert info.worker_ids == (dead.id,)
    assert claim_one(Consumer()).starts == 2


def test_what_is_given_back_with_a_delay_comes_back_by_itself(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    given_back_at = step(consumer, 0).now

    consumer.release(claim(consumer), delay=5)

    assert places() == {"delayed": [task_id]}
    due = queue.stats("default").next_due_at
    assert due is not None
    assert timedelta(seconds=5) <= due - given_back_at < timedelta(seconds=15)
    come_due(redis, task_id)
    assert claim_one(consumer).starts == 1


def test_only_the_holder_can_give_back(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    late = Consumer()
    claimed = claim(late)
    end_lease(redis, task_id)
    claim_one(Consumer())

    released = late.release(claimed)

    assert released == 0
    assert places() == {"running": [task_id]}


def test_nothing_is_sent_to_give_back_nothing(queue: TaskQueue) -> None:
    assert Consumer().release([]) == 0


def test_renewing_begins_the_lease_anew(queue: TaskQueue, redis: Redis) -> None:
    mail, other = queue.push(ECHO, queue="mail"), queue.push(ECHO)
    consumer = Consumer()
    claimed = claim(consumer, 2, ["mail", "default"])
    end_lease(redis, mail, queue="mail")
    end_lease(redis, other)

    lost = consumer.renew(["mail", "default"], claimed)

    assert lost == []
    assert claim(Consumer(), 2, ["mail", "default"]) == []
    now = step(consumer, 0).now
    for name, task_id in (("mail", mail), ("default", other)):
        [info] = queue.tasks(name, "running")
        assert info.id == task_id
        assert info.lease_expires_at is not None
        assert timedelta(seconds=25) < info.lease_expires_at - now <= timedelta(seconds=30)


def test_renewing_names_what_others_have_taken_over(queue: TaskQueue, redis: Redis) -> None:
    first, second = push_many(2)
    slow, fast = Consumer(), Consumer()
    claimed = claim(slow, 2)
    end_lease(redis, first)
    claim_one(fast)
    end_lease(redis, first)

    lost = slow.renew(["default"], claimed)

    assert lost == [first]
    assert ids(claim(Consumer(), 2)) == [first]
    assert redis.zscore(keys.queue_running("default", "default"), second) != LONG_AGO


def test_a_heartbeat_loses_nothing(queue: TaskQueue) -> None:
    tasks = push_many(3)
    consumer = Consumer()
    request = consumer.request({"default": 2}, 2)
    claimed = consumer.advance(request).claimed

    consumer.renew(["default"])
    consumer.renew(["default"], claimed)

    assert places() == {"running": tasks[:2], "ready": tasks[2:]}
    assert consumer.advance(request).claimed == claimed


def test_the_lease_is_the_one_that_was_set(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    with options(lease=5):
        now = step(Consumer()).now

    info = queue.get(task_id)
    assert info is not None
    assert info.lease_expires_at is not None
    assert timedelta(seconds=4.9) < info.lease_expires_at - now <= timedelta(seconds=5)


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


def test_a_repeated_request_that_claimed_nothing_claims_nothing(queue: TaskQueue) -> None:
    consumer = Consumer()
    request = consumer.request({"default": 1}, 1)
    assert consumer.advance(request).claimed == []
    task_id = queue.push(ECHO)

    again = consumer.advance(request).claimed

    assert again == []
    assert ids(claim(consumer)) == [task_id]


def test_a_repeated_request_does_not_get_what_others_have_taken_over(queue: TaskQueue, redis: Redis) -> None:
    first, second = push_many(2)
    consumer = Consumer()
    request = consumer.request({"default": 2}, 2)
    consumer.advance(request)
    end_lease(redis, first)
    claim_one(Consumer())

    again = consumer.advance(request).claimed

    assert ids(again) == [second]


def test_a_thousand_tasks_go_through_in_a_few_calls(queue: TaskQueue) -> None:
    tasks = push_many(1_000)
    consumer = Consumer()

    claimed = claim(consumer, 1_000)
    assert ids(claimed) == tasks
    assert consumer.renew(["default"], claimed) == []
    assert consumer.release(claimed[500:]) == 500
    lost = hand_in(consumer, *map(succeeded, claimed[:500])).lost

    assert lost == []
    stats = queue.stats("default")
    assert (stats.ready, stats.running, stats.successful) == (500, 0, 500)
    assert ids(claim(consumer, 1_000)) == tasks[500:]


def test_the_queues_of_another_alias_are_others(queue: TaskQueue) -> None:
    backend = {"BACKEND": "components.backends.tasks.RedisBackend", "QUEUES": []}
    with override_settings(TASKS={"default": backend, "mail": backend}):
        task_id = TaskQueue("mail").push(ECHO)

        assert claim(Consumer()) == []
        assert queue.names() == []
        assert ids(claim(Consumer("mail"))) == [task_id]


def test_an_alias_that_is_not_in_the_settings_is_an_error(queue: TaskQueue) -> None:
    with pytest.raises(ImproperlyConfigured, match="no alias 'mail'; it has: 'default'"):
        TaskQueue("mail").push(ECHO)
