"""Which task goes first: queues by their shares, then priorities, then what became runnable first."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest
from redis import Redis

from components.services.queues import Consumer, NewTask, TaskQueue
from components.workers.choice import QueueChoice
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    come_due,
    end_lease,
    ids,
    options,
    places,
    push_many,
    server_time,
)
from tests.support.waiting import eventually

MILLISECOND = timedelta(milliseconds=1)


@pytest.fixture
def queue(redis: Redis) -> TaskQueue:
    return TaskQueue()


def test_within_a_priority_the_first_in_is_the_first_out(queue: TaskQueue) -> None:
    tasks = [queue.push(ECHO) for _ in range(100)]

    claimed = [claim_one(Consumer()).id for _ in range(50)] + ids(claim(Consumer(), 50))

    assert claimed == tasks


def test_a_batch_keeps_its_order(queue: TaskQueue) -> None:
    tasks = push_many(1_000)

    claimed = ids(claim(Consumer(), 1_000))

    assert claimed == tasks


def test_higher_priorities_go_first(queue: TaskQueue) -> None:
    priorities = [*range(-100, 101), *range(-100, 101)]
    random.shuffle(priorities)
    queue.push_many([NewTask(name=ECHO, args=[at], priority=at) for at in priorities])

    claimed = [task.read() for task in claim(Consumer(), 402)]

    assert [info.args[0] for info in claimed] == sorted(priorities, reverse=True)
    assert [info.priority for info in claimed] == sorted(priorities, reverse=True)


def test_within_each_of_many_priorities_the_first_in_is_the_first_out(queue: TaskQueue) -> None:
    priorities = random.choices([-100, -1, 0, 1, 100], k=300)
    pushed = queue.push_many([NewTask(name=ECHO, priority=at) for at in priorities])

    claimed = ids(claim(Consumer(), 300))

    assert claimed == [info.id for info in sorted(pushed, key=lambda info: -info.priority)]


def test_what_came_due_before_another_was_pushed_goes_first(queue: TaskQueue, redis: Redis) -> None:
    earlier, later = queue.push(ECHO, delay=60), queue.push(ECHO, delay=60)
    [pushed] = queue.push_many([NewTask(name=ECHO)])
    come_due(redis, earlier, at=pushed.enqueued_at - MILLISECOND)
    come_due(redis, later, at=pushed.enqueued_at + MILLISECOND)
    assert eventually(lambda: server_time() > pushed.enqueued_at + MILLISECOND)

    claimed = ids(claim(Consumer(), 3))

    assert claimed == [earlier, pushed.id, later]


def test_it_does_not_matter_when_a_due_task_is_moved(queue: TaskQueue, redis: Redis) -> None:
    second, first = queue.push(ECHO, delay=60), queue.push(ECHO, delay=60)
    now = server_time()
    come_due(redis, second, at=now - MILLISECOND)
    claim(Consumer(), 0)
    assert places() == {"ready": [second], "delayed": [first]}
    come_due(redis, first, at=now - 2 * MILLISECOND)

    claimed = ids(claim(Consumer(), 2))

    assert claimed == [first, second]


def test_a_due_task_does_not_overtake_a_higher_priority(queue: TaskQueue, redis: Redis) -> None:
    due = queue.push(ECHO, delay=60, priority=1)
    high, low = queue.push(ECHO, priority=2), queue.push(ECHO, priority=0)
    come_due(redis, due)

    claimed = ids(claim(Consumer(), 3))

    assert claimed == [high, due, low]


def test_due_first_puts_matured_tasks_before_others_of_their_priority(queue: TaskQueue, redis: Redis) -> None:
    with options(due_first=True):
        high, low = queue.push(ECHO, priority=5), queue.push(ECHO, priority=0)
        delayed_high = queue.push(ECHO, delay=60, priority=5)
        delayed_low = queue.push(ECHO, delay=60, priority=0)
    now = server_time()
    come_due(redis, delayed_high, delayed_low, at=now)

    claimed = ids(claim(Consumer(), 4))

    assert claimed == [delayed_high, high, delayed_low, low]


def test_more_due_tasks_than_one_call_moves_all_come_in_order(queue: TaskQueue, redis: Redis) -> None:
    tasks = push_many(250, delay=60)
    now = server_time()
    for number, task_id in enumerate(tasks):
        come_due(redis, task_id, at=now - (300 - number) * MILLISECOND)

    claimed = [task.id for _ in range(3) for task in claim(Consumer(), 100)]

    assert claimed == tasks


def test_more_abandoned_tasks_than_one_call_takes_over_all_come_back_in_order(
    queue: TaskQueue, redis: Redis
) -> None:
    tasks = push_many(150)
    claim(Consumer(), 150)
    end_lease(redis, *tasks)

    claimed = [task.id for _ in range(2) for task in claim(Consumer(), 100)]

    assert claimed == tasks


def test_strict_order_empties_one_queue_before_the_next(queue: TaskQueue) -> None:
    low, high = push_many(2, queue="low"), push_many(3, queue="high")
    choice = QueueChoice(["high", "low"])

    first, second = (ids(claim(Consumer(), 3, choice.shares(3))) for _ in range(2))

    assert first == high
    assert second == low


def test_strict_order_goes_on_in_the_next_queue(queue: TaskQueue) -> None:
    low, high = push_many(3, queue="low"), push_many(1, queue="high")

    claimed = ids(claim(Consumer(), 3, QueueChoice(["high", "low"]).shares(3)))

    assert claimed == [*high, *low[:2]]


def test_weights_divide_a_batch(queue: TaskQueue) -> None:
    push_many(10, queue="much")
    push_many(10, queue="little")
    choice = QueueChoice(["much", "little"], weights={"much": 3, "little": 1})

    claimed = claim(Consumer(), 8, choice.shares(8))

    assert Counter(task.queue for task in claimed) == {"much": 6, "little": 2}


def test_weights_are_chances_for_a_single_task(queue: TaskQueue) -> None:
    push_many(400, queue="much")
    push_many(400, queue="little")
    choice = QueueChoice(["much", "little"], weights={"much": 3, "little": 1})

    claimed = [task.queue for _ in range(400) for task in claim(Consumer(), 1, choice.shares(1))]

    assert len(claimed) == 400
    assert 240 < Counter(claimed)["much"] < 360  # 300 are expected; this is seven standard deviations


def test_what_one_queue_leaves_of_its_share_goes_to_the_others(queue: TaskQueue) -> None:
    push_many(1, queue="much")
    push_many(10, queue="little")
    choice = QueueChoice(["much", "little"], weights={"much": 3, "little": 1})

    claimed = claim(Consumer(), 8, choice.shares(8))

    assert Counter(task.queue for task in claimed) == {"much": 1, "little": 7}


def test_round_robin_begins_with_another_queue_each_time(queue: TaskQueue) -> None:
    names = ["a", "b", "c"]
    for name in names:
        push_many(4, queue=name)
    choice = QueueChoice(names, round_robin=True)

    claimed = [claim(Consumer(), 1, choice.shares(1))[0].queue for _ in range(6)]

    assert claimed == ["b", "c", "a", "b", "c", "a"]
    batch = claim(Consumer(), 3, choice.shares(3))
    assert Counter(task.queue for task in batch) == {"a": 1, "b": 1, "c": 1}


def test_a_full_batch_is_never_more_than_what_was_asked_for(queue: TaskQueue) -> None:
    for name in ("a", "b", "c"):
        push_many(5, queue=name)
    choice = QueueChoice(["a", "b", "c"], round_robin=True)

    claimed = claim(Consumer(), 4, choice.shares(4))

    assert len(claimed) == 4


def test_ready_tasks_are_listed_in_the_order_in_which_they_will_run(queue: TaskQueue, redis: Redis) -> None:
    due = queue.push(ECHO, delay=60)
    low, high, normal = (queue.push(ECHO, priority=at) for at in (-1, 1, 0))
    come_due(redis, due)
    claim(Consumer(), 0)

    listed = places()["ready"]

    assert listed == [high, due, normal, low]
    assert listed == ids(claim(Consumer(), 4))
