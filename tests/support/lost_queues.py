"""The scripts of queues, each with what is done when its calls are repeated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from redis import Redis

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.scripts import Script
from components.kit.stored import EPOCH
from components.services.queues import Consumer, NewTask, Progress, State, TaskQueue, Ticks
from components.services.queues import keys as queues_keys
from components.services.queues.consumer import Parking
from tests.support.queues import (
    ECHO,
    age,
    claim,
    claim_one,
    come_due,
    end_lease,
    failed,
    hand_in,
    options,
    push_many,
    succeeded,
    to_retry,
)
from tests.support.repeating import Act, cases

case = cases("queues")


@case
def push(redis: Redis) -> Act:
    later = [NewTask(name=ECHO, args=[number], queue="mail", delay=60) for number in range(3)]
    now = [NewTask(name=ECHO, args=[number], priority=number) for number in range(3)]
    ticks = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 2)]
    periodic = [NewTask(name=ECHO, at=tick, tick=("nightly", tick)) for tick in ticks]
    return lambda: TaskQueue().push_many([*later, *now, *periodic])


@case
def enqueue(redis: Redis) -> Act:
    return lambda: TaskQueue().push_many([NewTask(name=ECHO, args=[1], queue="mail", priority=7, id="one")])


@case
def enqueue_again(redis: Redis) -> Act:
    """A task that has succeeded meanwhile."""
    TaskQueue().push_many([NewTask(name=ECHO, id="one")])
    hand_in((consumer := Consumer()), succeeded(*claim(consumer, 1)))
    return lambda: TaskQueue().push_many([NewTask(name=ECHO, id="one")]) and None


@case
def declare(redis: Redis) -> Act:
    Ticks().declare(["old"])
    return lambda: Ticks().declare(["old", "new"])


@case
def push_guarded(redis: Redis) -> Act:
    """Unique keys and ticks, new and taken, and one of each twice."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    TaskQueue().push_many([NewTask(name=ECHO, unique="a"), NewTask(name=ECHO, tick=("hourly", noon))])
    tasks = [NewTask(name=ECHO, unique=key) for key in ("a", "b", "b")]
    tasks += [NewTask(name=ECHO, tick=(name, noon)) for name in ("hourly", "daily", "daily")]
    tasks.append(NewTask(name=ECHO, unique="c", tick=("hourly", noon + timedelta(hours=1)), delay=60))
    return lambda: TaskQueue().push_many(tasks)


@case
def advance(redis: Redis) -> Act:
    consumer, dying = Consumer(), Consumer()
    push_many(9)
    good, bad, abandoned, taken = claim(consumer, 4)
    [lost] = claim(dying, 1)
    end_lease(redis, abandoned.id, lost.id, taken.id)
    come_due(redis, *push_many(2, delay=60))
    claim_one(Consumer())
    request = consumer.request({"default": 3}, 3, [succeeded(good), failed(bad), failed(taken), failed(lost)])
    return lambda: [consumer.advance(request).claimed, consumer.advance(request).lost]


@case
def advance_guarded(redis: Redis) -> Act:
    """All outcomes, of tasks that are unique, awaited or cancelled, and of their own lease and progress."""
    consumer, queue = Consumer(), TaskQueue()
    tasks = [NewTask(name=ECHO, unique=f"{number}", lease=50) for number in range(7)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    claimed = claim(consumer, 6)
    for task in claimed:
        consumer.progress(task, Progress(1))
        queue.wait_for(task.id, wait=0)
    queue.cancel("default", pushed[3:6])
    end_lease(redis, pushed[5])
    outcomes = [succeeded, failed, to_retry, to_retry, succeeded]
    finished = [end(task) for end, task in zip(outcomes, claimed, strict=False)]
    request = consumer.request({"default": 3}, 3, [*finished, failed(claimed[2])])
    return lambda: [consumer.advance(request).claimed, consumer.advance(request).lost]


@case
def cancel(redis: Redis) -> Act:
    queue = TaskQueue()
    tasks = [NewTask(name=ECHO, unique=f"{number}", delay=number % 2 * 60) for number in range(6)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    _running, done = claim(Consumer(), 2)
    hand_in(Consumer(), succeeded(done))
    queue.wait_for(pushed[-1], wait=0)
    return lambda: queue.cancel("default", [*pushed, "nothing"])


@case
def delete(redis: Redis, state: State = "ready") -> Act:
    queue, consumer = TaskQueue(), Consumer()
    tasks = [NewTask(name=ECHO, unique=f"{number}") for number in range(5)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    good, bad = claim(consumer, 2)
    consumer.progress(bad, Progress(1))
    hand_in(consumer, succeeded(good), failed(bad))
    queue.wait_for(pushed[-1], wait=0)
    return lambda: queue.delete("default", state, [*pushed, "nothing"])


@case
def delete_dead(redis: Redis) -> Act:
    return delete(redis, "dead")


@case
def delete_successful(redis: Redis) -> Act:
    return delete(redis, "successful")


@case
def progress(redis: Redis) -> Act:
    consumer = Consumer()
    push_many(1)
    claimed = claim_one(consumer)
    return lambda: consumer.progress(claimed, Progress(3, 4, "nearly", EPOCH))


@case
def resend(redis: Redis) -> Act:
    queue, consumer = TaskQueue(), Consumer()
    tasks = [NewTask(name=ECHO, unique=unique) for unique in ("a", "b", None)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    hand_in(consumer, *map(failed, claim(consumer, 3)))
    queue.push_many([NewTask(name=ECHO, unique="a")])
    return lambda: queue.resend("default", [*pushed, "nothing"])


@case
def trim(redis: Redis) -> Act:
    consumer = Consumer()
    push_many(9)
    old = claim(consumer, 3)
    hand_in(consumer, *map(failed, old[:2]), succeeded(old[2]))
    for key in (
        queues_keys.QueueKeys("default", "default").dead,
        queues_keys.QueueKeys("default", "default").successful,
    ):
        age(redis, key, timedelta(days=365))
    hand_in(consumer, *map(failed, claim(consumer, 5)))

    def act() -> None:
        with options(dead_limit=4):
            consumer.trim("default")  # its count is that of the last sending

    return act


@case
def release_cancelled(redis: Redis) -> Act:
    consumer = Consumer()
    pushed = push_many(3)
    claimed = claim(consumer, 3)
    end_lease(redis, pushed[2])
    taken_over = claim_one(consumer)
    TaskQueue().cancel("default", pushed[1:])
    return lambda: consumer.release([*claimed, taken_over])


@case
def release(redis: Redis, delay: float = 0, *, has_begun: bool = False) -> Act:
    consumer = Consumer()
    push_many(4)
    claimed = claim(consumer, 3)

    def act() -> None:
        consumer.release(
            claimed, delay=delay, begun=claimed if has_begun else []
        )  # its count is that of the last sending

    return act


@case
def release_cut_off(redis: Redis) -> Act:
    return release(redis, has_begun=True)


@case
def release_later(redis: Redis) -> Act:
    return release(redis, delay=60)


@case
def renew(redis: Redis) -> Act:
    consumer = Consumer()
    push_many(3)
    claimed = claim(consumer, 3)
    end_lease(redis, claimed[0].id)
    claim_one(Consumer())
    TaskQueue().cancel("default", [claimed[1].id])
    TaskQueue().tell(consumer.id, "quiet")
    return lambda: consumer.renew(["default"], claimed)


@case
def park(redis: Redis) -> Act:
    tasks = [SimpleNamespace(place=1, member="one default"), SimpleNamespace(place=2, member="two default")]
    keys, script = queues_keys.BackendKeys("default"), Script("queues/park")
    return lambda: at_once(script.run(get_client(), keys, limit="api", kept=60_000, tasks=tasks))


@case
def tell(redis: Redis) -> Act:
    return lambda: TaskQueue().tell("worker", "stop")


@case
def pause(redis: Redis) -> Act:
    return lambda: TaskQueue().pause("default")


@case
def wake(redis: Redis) -> Act:
    TaskQueue().pause("default")
    return lambda: TaskQueue().resume("default")


@case
def unpark(redis: Redis) -> Act:
    push_many(3)
    consumer = Consumer()
    parking = Parking(consumer)
    gone, *_others = tasks = claim(consumer, 3)
    parking.park("limit", tasks)
    TaskQueue().cancel("default", [gone.id])
    return lambda: parking.unpark("limit", by="caller")


@case
def await_(redis: Redis) -> Act:
    [task_id] = push_many(1)
    return lambda: TaskQueue().wait_for(task_id, wait=0)
