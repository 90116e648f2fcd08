"""
The queue against a model in plain Python: whatever is done in whatever order, each task is in exactly one
place with its story, counts are right, unique keys are held by who is unfinished, and claims come in order.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis import Redis

from components.services.queues import Claimed, Consumer, Finished, NewTask, Progress, State, TaskQueue, keys
from components.services.queues.consumer import Request
from components.services.queues.facts import to_us
from components.services.queues.new_task import digest
from tests.support.queues import (
    ECHO,
    LONG_AGO,
    STATES,
    failed,
    ids,
    options,
    places,
    server_time,
    succeeded,
    to_retry,
)

QUEUES = ("high", "low")
MAX_CRASHES = 2


@dataclass
class Task:
    """What the model knows of a task."""

    id: str
    queue: str
    priority: int
    unique: str | None
    state: State | None
    #: Microsecond at which it became, or becomes, runnable.
    runnable: int = 0
    starts: int = 0
    crashes: int = 0
    failures: int = 0
    token: str = ""
    is_cancelled: bool = False
    has_run: bool = False
    is_expired: bool = False
    is_due: bool = False
    is_awaited: bool = False
    has_crashed: bool = False
    #: Matured before it was ready, where such tasks go first.
    goes_first: bool = False

    @property
    def place(self) -> tuple[int, bool, int, str]:
        return (-self.priority, not self.goes_first, self.runnable // 1_000, self.id)

    @property
    def is_unfinished(self) -> bool:
        return self.state in ("ready", "delayed", "running")

    @property
    def may_end_well_later(self) -> bool:
        """Whether a run whose lease has ended may still hand in a success."""
        is_open = self.is_unfinished and not self.is_cancelled
        return self.crashes > 0 and (is_open or (self.state == "dead" and self.has_crashed))

    @property
    def story(self) -> tuple[str, int, int, bool]:
        return (self.id, self.starts, self.crashes, self.is_cancelled)

    def delay(self, *, due_first: bool) -> None:
        self.state, self.token, self.is_due, self.goes_first = "delayed", "", False, due_first

    def end(self, state: State | None) -> None:
        self.state, self.token, self.is_awaited, self.has_run = state, "", False, True

    def take_over(self) -> None:
        """The lease has ended."""
        self.crashes += bool(self.token)
        self.token = ""
        if self.is_cancelled or self.crashes >= MAX_CRASHES:
            self.end("dead")
            self.has_crashed = not self.is_cancelled
        else:
            self.state = "ready"

    def ack(self, outcome: str, *, due_first: bool) -> None:
        if outcome == "successful":
            self.end("successful")
            return
        self.failures += 1
        if outcome == "retry" and not self.is_cancelled:
            self.delay(due_first=due_first)
        else:
            self.end("dead")

    def release(self, delay: float, *, due_first: bool) -> None:
        self.token = ""
        self.starts -= 1
        if self.is_cancelled:
            self.is_expired = True
            return
        self.has_run = bool(self.starts or self.crashes)
        if delay:
            self.delay(due_first=due_first)
        else:
            self.state = "ready"


@dataclass
class Model:
    tasks: dict[str, Task] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    ticks: dict[str, int] = field(default_factory=dict)

    def of(self, queue: str, state: State) -> list[Task]:
        return [task for task in self.tasks.values() if task.queue == queue and task.state == state]

    def holder(self, unique: str | None) -> Task | None:
        found = [
            task for task in self.tasks.values() if unique and task.unique == unique and task.is_unfinished
        ]
        assert len(found) <= 1
        return found[0] if found else None

    def move(self, queue: str) -> None:
        for task in self.of(queue, "delayed"):
            if task.is_due:
                task.state = "ready"
        for task in self.of(queue, "running"):
            if task.is_expired:
                task.take_over()

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
            task.state, task.token, task.is_expired, task.has_run = "running", token, False, True
            task.starts += 1
        return [task.id for task in ready[:want]]


HOUR = 3_600  # seconds: later than any test
SPAN = 2**43

queues = st.sampled_from(QUEUES)
priorities = st.sampled_from([-100, 0, 0, 1])
uniques = st.sampled_from([None, None, "a", "b"])
picks = st.integers(0, 1_000_000)
ends = st.sampled_from(["successful", "dead", "retry"])


class QueueMachine(RuleBasedStateMachine):
    def __init__(self, redis: Redis) -> None:
        super().__init__()
        self.redis = redis
        redis.flushall()
        self.queue = TaskQueue()
        self.due_first = self.queue.options.due_first
        self.model = Model()
        self.consumers = [Consumer(), Consumer()]
        #: Every claim ever made, with the consumer that made it; most are out of date.
        self.claims: list[tuple[Consumer, Claimed]] = []
        self.last: tuple[Consumer, Request, list[str]] | None = None

    @rule(queue=queues, priority=priorities, unique=uniques, is_delayed=st.booleans())
    def push(self, queue: str, priority: int, unique: str | None, is_delayed: bool) -> None:
        holder = self.model.holder(unique)
        new = NewTask(
            name=ECHO, queue=queue, priority=priority, unique=unique, delay=HOUR if is_delayed else None
        )

        [info] = self.queue.push_many([new])

        assert info is not None
        if holder:
            assert (info.id, info.state, info.queue) == (holder.id, holder.state, holder.queue)
        else:
            self.store(info.id, new)

    @rule(queue=queues, name=st.sampled_from("xy"), hour=st.integers(0, 3), unique=uniques)
    def tick(self, queue: str, name: str, hour: int, unique: str | None) -> None:
        is_taken = hour <= self.model.ticks.get(name, -1)
        holder = self.model.holder(unique)
        new = NewTask(
            name=ECHO, queue=queue, unique=unique, tick=(name, datetime(2026, 1, 1, hour, tzinfo=UTC))
        )

        [info] = self.queue.push_many([new])

        self.model.ticks[name] = max(hour, self.model.ticks.get(name, -1))
        if holder:
            assert info is not None
            assert info.id == holder.id
        elif is_taken:
            assert info is None
        else:
            assert info is not None
            self.store(info.id, new)

    @rule(pick=picks, earlier=st.integers(0, 5_000))
    @precondition(lambda self: self.those("delayed"))
    def come_due(self, pick: int, earlier: int) -> None:
        task = self.pick(pick, "delayed")
        at = to_us(server_time() - timedelta(microseconds=earlier))
        self.redis.zadd(keys.QueueKeys("default", task.queue).delayed, {task.id: at})
        task.runnable, task.is_due = at, True

    @rule(pick=picks)
    @precondition(lambda self: self.those("running"))
    def lease_ends(self, pick: int) -> None:
        task = self.pick(pick, "running")
        self.redis.zadd(keys.QueueKeys("default", task.queue).running, {task.id: LONG_AGO})
        task.is_expired = True

    @rule(who=st.integers(0, 1), want=st.integers(0, 4))
    def claim(self, who: int, want: int) -> None:
        self.advance(self.consumers[who], want, [])

    @rule(acks=st.lists(st.tuples(picks, ends), min_size=1, max_size=4), want=st.integers(0, 1))
    @precondition(lambda self: self.claims)
    def ack(self, acks: list[tuple[int, str]], want: int) -> None:
        finished, late, acked = [], [], set[str]()
        for pick, outcome in acks:
            consumer, claimed = self.claims[pick % len(self.claims)]
            finish = {"successful": succeeded, "dead": failed, "retry": lambda task: to_retry(task, HOUR)}
            finished.append(finish[outcome](claimed))
            task = self.model.tasks[claimed.id]
            if task.token == claimed.token:
                task.ack(outcome, due_first=self.due_first)
            elif outcome == "successful" and task.may_end_well_later and task.id not in acked:
                task.end("successful")
            else:
                late.append(claimed.id)
                continue
            acked.add(task.id)

        lost = self.advance(consumer, want, finished)

        assert lost == late

    @rule(pick=picks, delay=st.sampled_from([0, HOUR]))
    @precondition(lambda self: self.claims)
    def release(self, pick: int, delay: float) -> None:
        consumer, claimed = self.claims[pick % len(self.claims)]
        task = self.model.tasks[claimed.id]
        is_held = task.token == claimed.token
        if is_held:
            task.release(delay, due_first=self.due_first)

        assert consumer.release([claimed], delay=delay) == is_held

    @rule(pick=picks)
    @precondition(lambda self: self.claims)
    def renew(self, pick: int) -> None:
        consumer, claimed = self.claims[pick % len(self.claims)]
        task = self.model.tasks[claimed.id]
        is_held = task.token == claimed.token
        if is_held:
            task.is_expired = False

        heartbeat = consumer.renew(QUEUES, [claimed])

        assert heartbeat.lost == ([] if is_held else [claimed.id])
        assert heartbeat.cancelled == ([claimed.id] if is_held and task.is_cancelled else [])
        assert consumer.progress(claimed, Progress(1)) == (is_held and not task.is_cancelled)

    @rule()
    @precondition(lambda self: self.last)
    def repeat_the_last_request(self) -> None:
        assert self.last is not None
        consumer, request, claimed = self.last
        token = f"{consumer.id}:{request.number}"

        again = ids(consumer.advance(request).claimed)

        held = [task_id for task_id in claimed if self.model.tasks[task_id].token == token]
        assert again == held
        for task_id in held:
            self.model.tasks[task_id].is_expired = False

    @rule(pick=picks)
    @precondition(lambda self: self.model.tasks)
    def cancel(self, pick: int) -> None:
        task = self.pick(pick)
        before = task.state
        if before in ("ready", "delayed", "running"):
            task.is_cancelled = True
        if before in ("ready", "delayed"):
            task.end("dead")

        cancelled = self.queue.cancel(task.queue, [task.id])

        is_dead = task.state == "dead" and task.is_cancelled
        assert (cancelled.at_once, cancelled.asked) == (is_dead, before == "running")

    @rule(pick=picks)
    @precondition(lambda self: self.those("dead"))
    def resend(self, pick: int) -> None:
        task = self.pick(pick, "dead")
        holder = self.model.holder(task.unique)

        resent = self.queue.resend(task.queue, [task.id])

        assert (resent.sent, resent.refused) == ((0, [task.id]) if holder else (1, []))
        if not holder:
            score = self.redis.zscore(keys.QueueKeys("default", task.queue).ready, task.id)
            assert score is not None
            self.model.tasks[task.id] = Task(
                task.id, task.queue, task.priority, task.unique, "ready", int(score) % SPAN * 1_000
            )
            self.model.tasks[task.id].failures = task.failures

    @rule(pick=picks, state=st.sampled_from([state for state in STATES if state != "running"]))
    @precondition(lambda self: self.model.tasks)
    def delete(self, pick: int, state: State) -> None:
        task = self.pick(pick)
        was_there = task.state is not None
        if task.state == state:
            task.end(None)

        assert self.queue.delete(task.queue, state, [task.id]) == (task.state is None)
        assert was_there or self.queue.get(task.id) is None

    @rule(queue=queues, limit=st.integers(1, 2))
    def trim(self, queue: str, limit: int) -> None:
        going = places(queue).get("dead", [])[limit:]
        for task_id in going:
            self.model.tasks[task_id].end(None)

        with options(dead_limit=limit):
            assert self.consumers[0].trim(queue) == len(going)

    @rule(pick=picks)
    @precondition(lambda self: self.model.tasks)
    def wait_for(self, pick: int) -> None:
        task = self.pick(pick)
        task.is_awaited = task.is_unfinished

        info = self.queue.wait_for(task.id, wait=0)

        assert (info and info.state) == task.state
        assert len(info.errors if info else ()) >= (task.failures if task.state else 0)

    @rule(queue=queues)
    def pause(self, queue: str) -> None:
        assert self.queue.pause(queue) == (queue not in self.model.paused)
        self.model.paused.add(queue)

    @rule(queue=queues)
    def resume(self, queue: str) -> None:
        assert self.queue.resume(queue) == (queue in self.model.paused)
        self.model.paused.discard(queue)

    @invariant()
    def each_task_is_in_one_place_with_its_story(self) -> None:
        for name in QUEUES:
            for state in STATES:
                expected = sorted(self.model.of(name, state), key=lambda task: task.place)
                listed = self.queue.tasks(name, state)
                if state == "ready":
                    assert ids(listed) == ids(expected)
                if state != "successful":
                    stories = [(info.id, info.starts, info.crashes, info.is_cancelled) for info in listed]
                    assert sorted(stories) == sorted(task.story for task in expected)
                assert sorted(ids(listed)) == sorted(ids(expected))

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
        assert all(self.redis.llen(keys.QueueKeys("default", name).wake) <= 1 for name in QUEUES)

    @invariant()
    def each_record_is_that_of_a_task_in_place(self) -> None:
        kept = {task.id: task for task in self.model.tasks.values() if task.state not in (None, "successful")}
        stored = {task_id.decode() for task_id in self.redis.hkeys(keys.BackendKeys("default").tasks)}
        run = {task_id.decode() for task_id in self.redis.hkeys(keys.BackendKeys("default").runs)}
        wrong = {task_id.decode() for task_id in self.redis.hkeys(keys.BackendKeys("default").errors)}
        assert stored == kept.keys()
        assert run == {task_id for task_id, task in kept.items() if task.has_run}
        assert wrong == {task_id for task_id, task in kept.items() if task.failures}

    @invariant()
    def unique_keys_and_waiters_are_those_of_unfinished_tasks(self) -> None:
        held = self.redis.hgetall(keys.BackendKeys("default").uniques)
        awaited = self.redis.smembers(keys.BackendKeys("default").awaited)
        unfinished = [task for task in self.model.tasks.values() if task.is_unfinished]
        assert held == {
            digest(ECHO, task.unique).encode(): task.id.encode() for task in unfinished if task.unique
        }
        assert awaited == {task.id.encode() for task in unfinished if task.is_awaited}

    def store(self, task_id: str, new: NewTask) -> None:
        info = self.queue.get(task_id)
        assert info is not None
        task = Task(task_id, new.queue, new.priority, new.unique, "ready", to_us(info.enqueued_at))
        if new.delay:
            task.delay(due_first=self.due_first)
        self.model.tasks[task_id] = task

    def those(self, state: State | None = None) -> list[Task]:
        return [task for task in self.model.tasks.values() if state in (None, task.state)]

    def pick(self, pick: int, state: State | None = None) -> Task:
        tasks = self.those(state)
        return tasks[pick % len(tasks)]

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
@pytest.mark.parametrize(
    ("examples", "is_fixed"),
    [(8, True), pytest.param(25, False, marks=pytest.mark.slow)],
    ids=["the same each time", "others each time"],
)
def test_the_queue_behaves_as_its_model(redis: Redis, due_first: bool, examples: int, is_fixed: bool) -> None:
    bounded = settings(
        max_examples=examples,
        derandomize=is_fixed,
        phases=[Phase.generate] if is_fixed else [*Phase],  # no minutes of shrinking in quick tests
        database=None,
        stateful_step_count=40,
    )
    with options(max_crashes=MAX_CRASHES, due_first=due_first, lease=600):
        run_state_machine_as_test(lambda: QueueMachine(redis), settings=bounded)
