"""
The queue against a model in plain Python: whatever is done in whatever order, each task is in exactly one
place, counts are right, and claims come in the right order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis import Redis

from components import keys
from components.services.queues import Claimed, Consumer, Finished, State, TaskQueue
from components.services.queues.consumers import Request
from components.services.queues.records import to_us
from tests.support.queues import ECHO, LONG_AGO, STATES, failed, ids, options, places, server_time, succeeded

QUEUES = ("high", "low")
MAX_STARTS = 2

queues = st.sampled_from(QUEUES)
priorities = st.sampled_from([-100, 0, 0, 1])
picks = st.integers(0, 1_000_000)


@dataclass
class Task:
    """What the model knows of a task."""

    id: str
    queue: str
    priority: int
    state: State
    #: Microsecond at which it became, or becomes, runnable.
    runnable: int
    starts: int = 0
    token: str = ""
    is_expired: bool = False
    is_due: bool = False
    #: Matured before it was ready, where such tasks go first.
    goes_first: bool = False

    @property
    def place(self) -> tuple[int, bool, int, str]:
        return (-self.priority, not self.goes_first, self.runnable // 1_000, self.id)


@dataclass
class Model:
    tasks: dict[str, Task] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)

    def of(self, queue: str, state: State) -> list[Task]:
        return [task for task in self.tasks.values() if task.queue == queue and task.state == state]

    def move(self, queue: str) -> None:
        for task in self.of(queue, "delayed"):
            if task.is_due:
                task.state = "ready"
        for task in self.of(queue, "running"):
            if task.is_expired:
                task.state = "dead" if task.starts >= MAX_STARTS else "ready"
                task.token = ""

    def claim(self, want: int, token: str) -> list[str]:
        for queue in QUEUES:
            self.move(queue)
        ready = [
            task
            for queue in QUEUES
            if queue not in self.paused
            for task in sorted(self.of(queue, "ready"), key=lambda task: task.place)
        ]
        for task in ready[:want]:
            task.state, task.token, task.is_expired = "running", token, False
            task.starts += 1
        return [task.id for task in ready[:want]]


class QueueMachine(RuleBasedStateMachine):
    def __init__(self, redis: Redis) -> None:
        super().__init__()
        self.redis = redis
        redis.flushall()
        self.queue = TaskQueue()
        self.model = Model()
        self.consumers = [Consumer(), Consumer()]
        #: Every claim ever made, with the consumer that made it; most are out of date.
        self.claims: list[tuple[Consumer, Claimed]] = []
        self.last: tuple[Consumer, Request, list[str]] | None = None

    @rule(queue=queues, priority=priorities)
    def push(self, queue: str, priority: int) -> None:
        task_id = self.queue.push(ECHO, queue=queue, priority=priority)
        info = self.queue.get(task_id)
        assert info is not None
        self.model.tasks[task_id] = Task(task_id, queue, priority, "ready", to_us(info.enqueued_at))

    @rule(queue=queues, priority=priorities)
    def push_delayed(self, queue: str, priority: int) -> None:
        task_id = self.queue.push(ECHO, queue=queue, priority=priority, delay=3_600)
        self.model.tasks[task_id] = Task(
            task_id, queue, priority, "delayed", 0, goes_first=self.queue.options.due_first
        )

    @rule(pick=picks, earlier=st.integers(0, 5_000))
    @precondition(lambda self: self.delayed())
    def come_due(self, pick: int, earlier: int) -> None:
        task = self.delayed()[pick % len(self.delayed())]
        at = to_us(server_time() - timedelta(microseconds=earlier))
        self.redis.zadd(keys.queue_delayed("default", task.queue), {task.id: at})
        task.runnable, task.is_due = at, True

    @rule(pick=picks)
    @precondition(lambda self: self.running())
    def lease_ends(self, pick: int) -> None:
        task = self.running()[pick % len(self.running())]
        self.redis.zadd(keys.queue_running("default", task.queue), {task.id: LONG_AGO})
        task.is_expired = True

    @rule(who=st.integers(0, 1), want=st.integers(0, 4))
    def claim(self, who: int, want: int) -> None:
        self.advance(self.consumers[who], want, [])

    @rule(acks=st.lists(st.tuples(picks, st.booleans()), min_size=1, max_size=4), want=st.integers(0, 1))
    @precondition(lambda self: self.claims)
    def ack(self, acks: list[tuple[int, bool]], want: int) -> None:
        finished, late = [], []
        for pick, dies in acks:
            consumer, claimed = self.claims[pick % len(self.claims)]
            finished.append(failed(claimed) if dies else succeeded(claimed))
            task = self.model.tasks[claimed.id]
            if task.token == claimed.token:
                task.state, task.token = ("dead" if dies else "successful"), ""
            else:
                late.append(claimed.id)

        lost = self.advance(consumer, want, finished)

        assert lost == late

    @rule(pick=picks)
    @precondition(lambda self: self.claims)
    def release(self, pick: int) -> None:
        consumer, claimed = self.claims[pick % len(self.claims)]
        task = self.model.tasks[claimed.id]
        is_held = task.token == claimed.token
        if is_held:
            task.state, task.token = "ready", ""
            task.starts -= 1

        assert consumer.release([claimed]) == is_held

    @rule(pick=picks)
    @precondition(lambda self: self.claims)
    def renew(self, pick: int) -> None:
        consumer, claimed = self.claims[pick % len(self.claims)]
        task = self.model.tasks[claimed.id]
        is_held = task.token == claimed.token
        if is_held:
            task.is_expired = False

        assert consumer.renew(QUEUES, [claimed]) == ([] if is_held else [claimed.id])

    @rule()
    @precondition(lambda self: self.last)
    def repeat_the_last_request(self) -> None:
        assert self.last is not None
        consumer, request, claimed = self.last
        token = f"{consumer.id}:{request.number}"

        again = ids(consumer.advance(request).claimed)

        assert again == [task_id for task_id in claimed if self.model.tasks[task_id].token == token]

    @rule(queue=queues)
    def pause(self, queue: str) -> None:
        assert self.queue.pause(queue) == (queue not in self.model.paused)
        self.model.paused.add(queue)

    @rule(queue=queues)
    def resume(self, queue: str) -> None:
        assert self.queue.resume(queue) == (queue in self.model.paused)
        self.model.paused.discard(queue)

    @invariant()
    def each_task_is_in_one_place(self) -> None:
        for name in QUEUES:
            found = places(name)
            for state in STATES:
                expected = sorted(self.model.of(name, state), key=lambda task: task.place)
                listed = found.get(state, [])
                assert sorted(listed) == sorted(task.id for task in expected)
                if state == "ready":
                    assert listed == [task.id for task in expected]

    @invariant()
    def counts_are_right(self) -> None:
        for name in QUEUES:
            stats = self.queue.stats(name)
            for state in STATES:
                assert getattr(stats, state) == len(self.model.of(name, state))
            assert stats.paused == (name in self.model.paused)
            assert (stats.oldest_age is None) == (not self.model.of(name, "ready"))

    @invariant()
    def no_queue_has_more_than_one_token(self) -> None:
        assert all(self.redis.llen(keys.queue_wake("default", name)) <= 1 for name in QUEUES)

    @invariant()
    def each_record_is_that_of_a_task_in_place(self) -> None:
        unfinished = {task.id for task in self.model.tasks.values() if task.state != "successful"}
        stored = {task_id.decode() for task_id in self.redis.hkeys(keys.queue_tasks("default"))}
        run = {task_id.decode() for task_id in self.redis.hkeys(keys.queue_runs("default"))}
        assert stored == unfinished
        assert run == {task_id for task_id in unfinished if self.model.tasks[task_id].starts}

    def delayed(self) -> list[Task]:
        return [task for task in self.model.tasks.values() if task.state == "delayed"]

    def running(self) -> list[Task]:
        return [task for task in self.model.tasks.values() if task.state == "running"]

    def advance(self, consumer: Consumer, want: int, finished: list[Finished]) -> list[str]:
        request = consumer.request(dict.fromkeys(QUEUES, want), want, finished)
        expected = self.model.claim(want, f"{consumer.id}:{request.number}")

        answer = consumer.advance(request)

        assert ids(answer.claimed) == expected
        assert [task.starts for task in answer.claimed] == [
            self.model.tasks[task_id].starts for task_id in expected
        ]
        self.claims += [(consumer, claimed) for claimed in answer.claimed]
        self.last = consumer, request, expected
        return answer.lost


@pytest.mark.parametrize("due_first", [False, True], ids=["in order", "due first"])
def test_the_queue_behaves_as_its_model(redis: Redis, due_first: bool) -> None:
    bounded = settings(
        max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )
    with options(max_crashes=MAX_STARTS, due_first=due_first):
        run_state_machine_as_test(lambda: QueueMachine(redis), settings=bounded)
