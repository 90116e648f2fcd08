"""Which task goes first, by queue, priority and instant, and which tokens say "look": at most one in a wake list."""

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from components.services.queues import Claimed, Consumer, NewTask, TaskQueue, keys
from components.services.queues.worker.choice import QueueChoice
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    come_due,
    end_lease,
    found,
    hand_in,
    ids,
    options,
    push_many,
    server_time,
    step,
    succeeded,
)


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
def test_the_highest_priority_starts_first_among_thousands_due_together(redis: Redis, place: str) -> None:
    urgent = many_due(redis, 1, priority=100) if place == "first" else []
    many_due(redis, 6_000)
    high = many_due(redis, 3, priority=50)
    urgent = urgent or many_due(redis, 1, priority=100)

    claimed = until_claimed(Consumer(), 5)

    assert ids(claimed)[0] == urgent[0]
    assert set(ids(claimed)[1:4]) == set(high)


def test_while_a_queue_sorts_the_next_waits_in_strict_order_and_goes_on_in_round_robin(redis: Redis) -> None:
    push_many(10, queue="low")
    many_due(redis, 3_000, queue="high")
    in_turn = QueueChoice(["high", "low"], round_robin=True)

    assert [task.queue for task in claim(Consumer(), 4, in_turn.shares(4))] == ["low"] * 4
    assert [task.queue for task in until_claimed(Consumer(), 4, ["high", "low"])] == ["high"] * 4


def test_one_step_moves_a_bounded_number_and_amount_of_due_tasks(queue: TaskQueue, redis: Redis) -> None:
    many_due(redis, 2_500, queue="a")
    many_due(redis, 300, queue="b")
    large = queue.push_many([NewTask(name=ECHO, args=["x" * 60_000], delay=60)] * 200)
    come_due(redis, *(info.id for info in large))

    step(Consumer(), 0, ["a", "b"])
    step(Consumer(), 0)

    assert queue.stats("a").ready + queue.stats("b").ready == 1_000
    assert queue.stats("b").ready == 300
    assert 60 <= queue.stats("default").ready <= 80  # about four megabytes


def test_when_too_many_are_due_to_be_sorted_soon_tasks_start_all_the_same(redis: Redis) -> None:
    push_many(1)
    due = {f"foreign-{number}": 1 for number in range(102_000)}
    redis.zadd(keys.QueueKeys("default", "default").delayed, due)

    assert len(claim(Consumer(), 1)) == 1


def measured(choice: QueueChoice, wants: Iterable[int], start: int = 0) -> Counter[str]:
    """How many tasks of each queue were claimed by requests for so many each."""
    consumer, claimed = Consumer(), Counter[str]()
    consumer.turn = start
    for want in wants:
        got = claim(consumer, want, choice.shares(want))
        assert len(got) == want
        claimed.update(task.queue for task in got)
    return claimed


@pytest.mark.parametrize(
    ("weights", "want", "start"),
    [
        ({"high": 6, "low": 1}, 2, 1),
        ({"high": 6, "low": 1}, 3, 0),
        ({"high": 6, "low": 1}, 10, 7),
        ({"empty": 7, "high": 6, "none": 20, "low": 1}, 2, 0),  # their shares fall to the others
        ({"empty": 7, "high": 6, "none": 20, "low": 1}, 5, 12_345),
    ],
)
def test_shares_are_those_of_the_weights_whatever_is_wanted(
    redis: Redis, weights: dict[str, int], want: int, start: int
) -> None:
    push_many(700, queue="high")
    push_many(700, queue="low")
    requests = 420 // want

    claimed = measured(QueueChoice(list(weights), weights=weights), [want] * requests, start)

    assert claimed["low"] == pytest.approx(want * requests / 7, abs=4)


@pytest.mark.parametrize(
    ("ready", "paused", "wants", "expected"),
    [
        ({"a": 1, "b": 50, "c": 50}, "", [9], {"a": 1, "b": 4, "c": 4}),
        ({"a": 100, "b": 100, "c": 100}, "b", [1] * 60, {"a": 30, "c": 30}),
        ({"a": 100, "c": 100}, "", [1] * 60, {"a": 30, "c": 30}),
    ],
)
def test_the_unused_share_of_a_queue_goes_to_all_others_and_is_not_made_up_for(
    queue: TaskQueue, ready: dict[str, int], paused: str, wants: list[int], expected: dict[str, int]
) -> None:
    for name, count in ready.items():
        push_many(count, queue=name)
    queue.pause(paused or "other")
    choice = QueueChoice(["a", "b", "c"], round_robin=True)

    assert measured(choice, wants) == expected
    queue.resume(paused or "other")
    push_many(40, queue="b")
    push_many(40, queue="a")
    assert measured(choice, [1] * 30) == {"a": 10, "b": 10, "c": 10}


@pytest.mark.parametrize(("queues", "wants"), [(3, (1, 2)), (4, (1, 1, 2)), (7, (9, 5)), (3, (1, 4))])
@pytest.mark.parametrize("start", [0, 7])
def test_round_robin_gives_equal_shares_whatever_wants(
    redis: Redis, queues: int, wants: tuple[int, ...], start: int
) -> None:
    """As where tasks of one length end in the same groups again and again."""
    names = [f"q{number}" for number in range(queues)]
    for name in names:
        push_many(300, queue=name)

    claimed = measured(QueueChoice(names, round_robin=True), wants * 40, start)

    assert sum(claimed.values()) == sum(wants) * 40
    assert claimed.keys() == set(names)
    assert max(claimed.values()) - min(claimed.values()) <= 1


def forget(redis: Redis) -> None:
    redis.delete(KEYS.wake, KEYS.wake_all, KEYS.wake_poller)


def test_pushes_leave_one_token_and_new_queues_wake_workers_of_all(woken: TaskQueue, redis: Redis) -> None:
    push_many(1_000)
    woken.push(ECHO, delay=60)
    assert redis.llen(KEYS.wake) == 1
    assert redis.llen(KEYS.wake_all) == 0

    woken.push(ECHO, queue="new")
    woken.push(ECHO, queue="newer")

    assert redis.llen(keys.QueueKeys("default", "new").wake) == 1
    assert redis.llen(KEYS.wake_all) == 1


def test_only_what_is_due_before_all_others_wakes_the_poller(woken: TaskQueue, redis: Redis) -> None:
    woken.push(ECHO)
    assert redis.llen(KEYS.wake_poller) == 0

    woken.push(ECHO, delay=60)
    assert redis.llen(KEYS.wake_poller) == 1
    forget(redis)
    woken.push(ECHO, delay=90)
    assert (redis.llen(KEYS.wake_poller), redis.llen(KEYS.wake)) == (0, 0)
    woken.push(ECHO, delay=30)
    woken.push(ECHO, delay=20)

    assert (redis.llen(KEYS.wake_poller), redis.llen(KEYS.wake)) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "queues"),
    [("worker", ["other", "new"]), ("worker", []), ("poller", [])],
    ids=["-q", "*", "poller"],
)
def test_a_push_wakes_whoever_waits(woken: TaskQueue, kind: str, queues: list[str]) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Consumer(kind=kind).wait, queues, 10, newcomers=not queues)
        woken.push(ECHO, queue="new", delay=60)

        assert waiting.result() is True


def test_a_worker_of_some_queues_leaves_the_token_of_a_new_one_to_a_worker_of_all(woken: TaskQueue) -> None:
    woken.push(ECHO, queue="new")

    assert Consumer().wait(["other"], 0.01) is False
    assert Consumer().wait(["other"], -1) is False
    assert Consumer().wait(["other"], 10, newcomers=True) is True


def test_a_worker_does_not_hear_the_poller_nor_the_poller_the_worker(woken: TaskQueue, redis: Redis) -> None:
    redis.rpush(KEYS.wake_poller, "1")
    assert Consumer().wait(["default"], 0.01) is False
    forget(redis)
    redis.rpush(KEYS.wake_all, "1")

    assert Consumer(kind="poller").wait([], 0.01) is False


@pytest.mark.parametrize(
    ("ready", "due_in", "want", "expected"),
    [
        (3, None, 1, 1),  # it had no room for the rest
        (1, None, 1, 0),
        (2, None, 3, 0),
        (1, 4.9, 1, 1),  # it is full, and another is needed soon
        (1, 3_600, 1, 0),
        (0, 4.9, 1, 0),  # it is idle, and looks again by itself
        (0, None, 0, 0),
    ],
)
def test_a_step_wakes_another_worker_if_there_is_more_to_do_than_it_wanted(
    woken: TaskQueue, redis: Redis, ready: int, due_in: float | None, want: int, expected: int
) -> None:
    push_many(ready)
    if due_in:
        woken.push(ECHO, delay=due_in)
    forget(redis)

    consumer = Consumer()
    claimed = claim(consumer, want)

    assert redis.llen(KEYS.wake) == expected
    forget(redis)
    consumer.release(claimed)
    assert redis.llen(KEYS.wake) == bool(claimed)


def test_a_poller_wakes_a_worker_for_what_it_has_moved(woken: TaskQueue, redis: Redis) -> None:
    due, abandoned = woken.push(ECHO, delay=60), woken.push(ECHO)
    claim_one(Consumer())
    forget(redis)
    come_due(redis, due)

    step(Consumer(kind="poller"), 0, {"default": 0})
    assert redis.llen(KEYS.wake) == 1
    claim(Consumer())
    forget(redis)
    end_lease(redis, abandoned)
    step(Consumer(kind="poller"), 0, {"default": 0})

    assert redis.llen(KEYS.wake) == 1


def test_a_paused_queue_gives_nothing_and_wakes_nobody_until_resumed(woken: TaskQueue, redis: Redis) -> None:
    woken.pause("default")
    due = woken.push(ECHO, delay=60)
    push_many(2)
    come_due(redis, due)
    forget(redis)

    assert [*claim(Consumer(), 1), *claim(Consumer(kind="poller"), 0)] == []
    assert redis.llen(KEYS.wake) == 0
    assert woken.stats("default").ready == 3
    assert [woken.resume("default") for _ in range(3)] == [True, False, False]
    assert redis.llen(KEYS.wake) == 1
    assert len(claim(Consumer(), 5)) == 3


@pytest.mark.parametrize("names", [["a", "b"], ["b", "a"]])
def test_a_step_tells_when_to_look_again(woken: TaskQueue, redis: Redis, names: list[str]) -> None:
    assert step(Consumer(), 1, names).look_again_at is None

    woken.push(ECHO, queue="a", delay=60)
    due = woken.push(ECHO, queue="b", delay=30)
    assert step(Consumer(), 1, names).look_again_at == found(due).run_after
    woken.push(ECHO, queue="a")
    with options(lease=10):
        claimed = step(Consumer(), 1, names)
    assert (claimed.look_again_at - claimed.now).total_seconds() == pytest.approx(10, abs=0.002)

    come_due(redis, *push_many(1_001, queue="a", delay=60), queue="a")
    behind = step(Consumer(), 1, names)
    assert behind.look_again_at <= behind.now


KEYS = keys.QueueKeys("default", "default")


@pytest.fixture
def woken(redis: Redis) -> TaskQueue:
    """A queue whose tokens of its first use are taken."""
    queue = TaskQueue()
    queue.push(ECHO)
    consumer = Consumer()
    hand_in(consumer, succeeded(claim_one(consumer)))
    forget(redis)
    return queue


def test_tasks_of_all_queues_are_run_intermingled_and_those_of_each_in_order(redis: Redis) -> None:
    push_many(6, queue="a")
    push_many(2, queue="b")
    claimed = claim(Consumer(), 8, QueueChoice(["a", "b"], {"a": 3, "b": 1}).shares(8))

    arranged = QueueChoice(["a", "b"], {"a": 3, "b": 1}).arranged(claimed)

    assert [task.queue for task in claimed] == list("aaaaaabb")
    assert [task.queue for task in arranged] == list("aabaaaba")
    assert [task for task in arranged if task.queue == "a"] == claimed[:6]
    assert QueueChoice(["a", "b"]).arranged(claimed) == claimed  # in strict order


@pytest.mark.parametrize("want", [1, 2, 9])
def test_in_strict_order_each_queue_is_asked_for_all_else_they_share_by_weight(want: int) -> None:
    strict, in_turn, weighted = (
        QueueChoice(["b", "c", "a"]),
        QueueChoice(["a", "b", "c"], round_robin=True),
        QueueChoice(["a", "b"], {"a": 3, "b": 1}),
    )

    assert list(strict.shares(want).items()) == [("b", want), ("c", want), ("a", want)]
    assert in_turn.shares(want) == pytest.approx(dict.fromkeys("abc", want / 3))
    assert weighted.shares(want) == pytest.approx({"a": want * 3 / 4, "b": want / 4})
