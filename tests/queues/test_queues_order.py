"""Which task goes first: queues by their shares, then priorities, then what became runnable first."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

import pytest
from redis import Redis

from components.services.queues import Claimed, Consumer, NewTask, TaskQueue, keys
from components.services.queues.worker.choice import QueueChoice
from tests.support.queues import (
    ECHO,
    claim,
    come_due,
    end_lease,
    ids,
    places,
    push_many,
    server_time,
    step,
)

MILLISECOND = timedelta(milliseconds=1)


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


def many_due(redis: Redis, count: int, *, queue: str = "default", priority: int = 0) -> list[str]:
    """So many tasks that have come due at the same instant."""
    tasks = push_many(count, queue=queue, delay=60, priority=priority)
    come_due(redis, *tasks, queue=queue, at=server_time())
    return tasks


def until_claimed(consumer: Consumer, want: int, queues: Sequence[str] = ("default",)) -> list[Claimed]:
    """What the first step claims that claims anything; each before it says that the next is to follow at once."""
    while True:
        done = step(consumer, want, queues)
        if done.claimed:
            return done.claimed
        assert done.is_behind


@pytest.mark.parametrize("place", ["first", "last"])
def test_the_highest_priority_starts_first_among_thousands_due_together(
    queue: TaskQueue, redis: Redis, place: str
) -> None:
    urgent = many_due(redis, 1, priority=100) if place == "first" else []
    many_due(redis, 6_000)
    high = many_due(redis, 3, priority=50)
    urgent = urgent or many_due(redis, 1, priority=100)

    claimed = until_claimed(Consumer(), 5)

    assert ids(claimed)[0] == urgent[0]
    assert set(ids(claimed)[1:4]) == set(high)


def test_in_strict_order_the_next_queue_waits_while_the_first_one_sorts_what_is_due(
    queue: TaskQueue, redis: Redis
) -> None:
    push_many(10, queue="low")
    many_due(redis, 3_000, queue="high")

    claimed = until_claimed(Consumer(), 4, ["high", "low"])

    assert [task.queue for task in claimed] == ["high"] * 4


def test_in_round_robin_other_queues_go_on_while_one_sorts_due_tasks(queue: TaskQueue, redis: Redis) -> None:
    push_many(10, queue="b")
    many_due(redis, 3_000, queue="a")

    claimed = claim(Consumer(), 4, QueueChoice(["a", "b"], round_robin=True).shares(4))

    assert [task.queue for task in claimed] == ["b"] * 4


def test_one_step_moves_a_bounded_number_of_due_tasks(queue: TaskQueue, redis: Redis) -> None:
    many_due(redis, 2_500, queue="a")
    many_due(redis, 300, queue="b")

    step(Consumer(), 0, ["a", "b"])

    assert queue.stats("a").ready + queue.stats("b").ready == 1_000
    assert queue.stats("b").ready == 300


def test_one_step_reads_a_bounded_amount_of_due_tasks(queue: TaskQueue, redis: Redis) -> None:
    queue.push_many([NewTask(name=ECHO, args=["x" * 60_000], delay=60)] * 200)
    come_due(redis, *places()["delayed"])

    step(Consumer(), 0)

    assert 60 <= queue.stats("default").ready <= 80  # about four megabytes


def test_when_too_many_are_due_to_be_sorted_soon_tasks_start_all_the_same(
    queue: TaskQueue, redis: Redis
) -> None:
    push_many(1)
    due = {f"foreign-{number}": 1 for number in range(102_000)}
    redis.zadd(keys.QueueKeys("default", "default").delayed, due)

    assert len(claim(Consumer(), 1)) == 1


def test_more_abandoned_tasks_than_one_call_takes_over_all_come_back_in_order(
    queue: TaskQueue, redis: Redis
) -> None:
    tasks = push_many(150)
    claim(Consumer(), 150)
    end_lease(redis, *tasks)

    claimed = [task.id for _ in range(2) for task in claim(Consumer(), 100)]

    assert claimed == tasks


def measured(choice: QueueChoice, wants: Iterable[int]) -> Counter[str]:
    """How many tasks of each queue were claimed by requests for so many each."""
    consumer = Consumer()
    claimed: Counter[str] = Counter()
    for want in wants:
        got = claim(consumer, want, choice.shares(want))
        assert len(got) == want
        claimed.update(task.queue for task in got)
    return claimed


@pytest.mark.parametrize(("want", "start"), [(2, 1), (3, 0), (4, 12_345), (10, 7)])
def test_shares_are_those_of_the_weights_however_many_tasks_are_wanted(
    queue: TaskQueue, want: int, start: int
) -> None:
    push_many(700, queue="high")
    push_many(700, queue="low")
    choice = QueueChoice(["high", "low"], weights={"high": 6, "low": 1}, turn=start)
    requests = 420 // want

    claimed = measured(choice, [want] * requests)

    assert claimed["low"] == pytest.approx(want * requests / 7, abs=4)


@pytest.mark.parametrize("want", [2, 5])
def test_the_share_of_an_empty_queue_falls_to_the_others_by_weight(queue: TaskQueue, want: int) -> None:
    push_many(700, queue="high")
    push_many(700, queue="low")
    weights = {"empty": 7, "high": 6, "none": 20, "low": 1}
    choice = QueueChoice(list(weights), weights=weights)
    requests = 420 // want

    claimed = measured(choice, [want] * requests)

    assert claimed["low"] == pytest.approx(want * requests / 7, abs=4)


@pytest.mark.parametrize(
    ("busy", "want"),
    [
        (("q3", "q9"), 4),
        (("q0", "q1", "q7"), 2),
    ],
)
def test_in_turn_busy_queues_get_the_same_whatever_queues_are_empty_between_them(
    queue: TaskQueue, busy: Sequence[str], want: int
) -> None:
    for name in busy:
        push_many(300, queue=name)
    choice = QueueChoice([f"q{number}" for number in range(10)], round_robin=True)
    requests = 300 // want

    claimed = measured(choice, [want] * requests)

    assert claimed.keys() == set(busy)
    assert max(claimed.values()) - min(claimed.values()) <= want


@pytest.mark.parametrize(("queues", "wants"), [(3, (1, 2)), (4, (1, 1, 2)), (7, (9, 5)), (3, (1, 4))])
@pytest.mark.parametrize("start", [0, 7])
def test_round_robin_queues_get_equal_shares_if_wants_vary_in_step_with_them(
    queue: TaskQueue, queues: int, wants: tuple[int, ...], start: int
) -> None:
    """As where tasks of one length end in the same groups again and again."""
    names = [f"q{number}" for number in range(queues)]
    for name in names:
        push_many(300, queue=name)

    claimed = measured(QueueChoice(names, round_robin=True, turn=start), wants * 40)

    assert sum(claimed.values()) == sum(wants) * 40
    assert claimed.keys() == set(names)
    assert max(claimed.values()) - min(claimed.values()) <= 1


def test_in_turn_a_queue_that_fills_up_is_served_at_once_and_makes_up_for_nothing(queue: TaskQueue) -> None:
    push_many(200, queue="a")
    push_many(200, queue="b")
    choice = QueueChoice(["a", "b", "c"], round_robin=True)
    measured(choice, [1] * 60)
    push_many(200, queue="c")

    claimed = measured(choice, [1] * 30)

    assert claimed == {"a": 10, "b": 10, "c": 10}


def test_the_unused_share_of_a_short_queue_goes_to_all_others(queue: TaskQueue) -> None:
    push_many(1, queue="a")
    push_many(50, queue="b")
    push_many(50, queue="c")
    choice = QueueChoice(["a", "b", "c"], round_robin=True)

    assert measured(choice, [9]) == {"a": 1, "b": 4, "c": 4}


def test_a_paused_queue_counts_as_empty(queue: TaskQueue) -> None:
    for name in ("a", "b", "c"):
        push_many(100, queue=name)
    queue.pause("b")

    claimed = measured(QueueChoice(["a", "b", "c"], round_robin=True), [1] * 60)

    assert claimed == {"a": 30, "c": 30}
