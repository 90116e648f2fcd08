"""What only looks: one task, counts, pages, searches, workers. It changes nothing, whatever the size of a queue."""

import os
import socket
from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.services.queues import Consumer, NewTask, Progress, State, TaskInfo, TaskQueue, keys
from tests.support.queues import (
    ECHO,
    STATES,
    age,
    claim,
    claim_one,
    come_due,
    end_lease,
    failed,
    found,
    hand_in,
    ids,
    options,
    push_many,
    server_time,
    succeeded,
    to_retry,
)
from tests.support.snapshots import snapshot

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("state", STATES)
def test_a_task_is_listed_as_read(queue: TaskQueue, one_of_each: dict[State, str], state: State) -> None:
    [listed] = queue.tasks("default", state)

    assert listed.id == one_of_each[state]
    assert listed.state == state
    assert queue.get(listed.id) == listed


def test_a_queue_without_tasks_is_empty(queue: TaskQueue) -> None:
    assert not any(getattr(queue.stats("nothing"), part) for part in (*STATES, "oldest_age", "next_due_at"))
    assert [queue.tasks("nothing", state) for state in STATES] == [[]] * 5
    assert queue.names() == queue.all_stats() == []


@pytest.mark.parametrize("priorities", [[0, 0], [100, -100], [-100, 100]])
def test_the_oldest_age_is_of_any_priority(queue: TaskQueue, redis: Redis, priorities: list[int]) -> None:
    waiting, other = (queue.push(ECHO, priority=priority, delay=60) for priority in priorities)
    now = server_time()
    come_due(redis, waiting, at=now - 9_000 * SECOND)
    come_due(redis, other, at=now - 3_000 * SECOND)
    claim(Consumer(), 0)

    assert 8_999 < queue.stats("default").oldest_age < 9_600


def test_pages_go_through_a_list_without_gaps(queue: TaskQueue) -> None:
    tasks = push_many(7)

    pages = [queue.tasks("default", "ready", offset=offset, limit=3) for offset in (0, 3, 6, 9)]

    assert [[info.id for info in page] for page in pages] == [tasks[:3], tasks[3:6], tasks[6:], []]
    assert [info.args for info in pages[0]] == [[0], [1], [2]]


def test_the_next_to_run_come_first_and_the_last_to_end(queue: TaskQueue, redis: Redis) -> None:
    tasks = push_many(4)
    consumer = Consumer()
    for finish, claimed in zip([succeeded, succeeded, failed, failed], claim(consumer, 4), strict=True):
        hand_in(consumer, finish(claimed))
        age(redis, keys.QueueKeys("default", "default").successful, SECOND)
        age(redis, keys.QueueKeys("default", "default").dead, SECOND)
    later, sooner = queue.push(ECHO, delay=60), queue.push(ECHO, delay=30)
    redis.delete(keys.BackendKeys("default").result(tasks[0]))

    assert queue.get(tasks[0]) is None  # its result has expired
    assert ids(queue.tasks("default", "successful")) == [tasks[1]]
    assert ids(queue.tasks("default", "dead")) == [tasks[3], tasks[2]]
    assert ids(queue.tasks("default", "delayed")) == [sooner, later]


def test_looking_changes_nothing(queue: TaskQueue, one_of_each: dict[State, str], redis: Redis) -> None:
    due, abandoned = queue.push(ECHO, delay=60), one_of_each["running"]
    come_due(redis, due)
    end_lease(redis, abandoned)
    before = snapshot(redis)

    queue.all_stats()
    queue.names()
    queue.workers()
    for state, task_id in one_of_each.items():
        queue.get(task_id)
        queue.tasks("default", state)

    assert snapshot(redis) == before


def test_a_worker_is_listed_by_its_heartbeat(queue: TaskQueue, redis: Redis) -> None:
    worker, poller = Consumer(concurrency=4), Consumer(kind="poller")
    push_many(1)
    before = server_time()
    with options(lease=600):
        worker.renew(["mail", "default"], claim(worker))
    age(redis, keys.BackendKeys("default").workers, SECOND)
    poller.renew(["*"])

    last, first = queue.workers()

    assert (last.id, last.kind, last.queues, first.id) == (poller.id, "poller", ("*",), worker.id)
    assert (first.kind, first.queues, first.concurrency, first.running) == (
        "worker",
        ("mail", "default"),
        4,
        1,
    )
    assert (first.host, first.pid, first.alive) == (socket.gethostname()[:30], os.getpid(), True)
    assert before <= first.started_at <= first.seen_at + timedelta(seconds=1, milliseconds=1)
    for seconds, alive in ((500, True), (100, False)):
        age(redis, keys.BackendKeys("default").workers, seconds * SECOND)
        with options(lease=600):
            assert queue.workers()[1].alive is alive
    worker.renew(["default"])
    again = queue.workers()[0]
    assert (again.id, again.started_at) == (worker.id, first.started_at)
    assert again.seen_at - first.seen_at >= 0 * SECOND


def test_a_silent_worker_is_forgotten_after_a_day(queue: TaskQueue, redis: Redis) -> None:
    silent, beating = Consumer(), Consumer()
    silent.renew(["default"])
    age(redis, keys.BackendKeys("default").workers, timedelta(days=1))

    beating.renew(["default"])

    assert [info.id for info in queue.workers()] == [beating.id]
    assert redis.zcard(keys.BackendKeys("default").workers) == 1
    assert 86_300_000 < redis.pttl(keys.BackendKeys("default").worker(silent.id)) <= 86_400_000


def test_a_task_is_found_by_what_it_is(queue: TaskQueue) -> None:
    tasks = [
        NewTask(name="shop.tasks.send_mail", args=["Jürgen", 12_345], kwargs={"Reply": {"to": ["a@b"]}}),
        NewTask(name="shop.tasks.clean"),
    ]
    mail, clean = ids(queue.push_many(tasks))

    for text in ("send_mail", "SEND_Mail", "jürgen", "JÜRGEN", "12345", "reply", "a@b", mail[-6:].upper()):
        assert ids(queue.search("default", "ready", text)) == [mail], text
    for text in ("shop.", ""):
        assert ids(queue.search("default", "ready", text)) == [mail, clean]
        assert ids(queue.search("default", "ready", text, window=1)) == [mail]
    assert list(queue.search("default", "ready", "nothing of that")) == []


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def is_even(info: TaskInfo) -> bool:
    return bool(info.args and info.args[0] % 2 == 0)


def move(redis: Redis, task_ids: list[str], state: State, unit: int) -> None:
    """Put the tasks, which are ready, into another state: the first at NOON, each next one a minute later."""
    of = keys.QueueKeys("default", "default")
    scores = {id: int(NOON.timestamp() + 60 * at) * unit for at, id in enumerate(task_ids)}
    redis.zadd(getattr(of, state), scores)
    redis.delete(of.ready)


def test_a_look_is_bounded_and_the_next_one_continues_it(queue: TaskQueue) -> None:
    tasks = push_many(10)

    first = queue.look("default", "ready", is_even, most=5)
    second = queue.look("default", "ready", is_even, most=5, after=first.after)
    third = queue.look("default", "ready", is_even, most=5, after=second.after)

    assert (ids(first.found), first.looked_at, first.offset) == ([tasks[0], tasks[2], tasks[4]], 5, 0)
    assert (ids(second.found), second.looked_at, second.offset) == ([tasks[6], tasks[8]], 5, 5)
    assert (third.found, third.looked_at, third.after) == ([], 0, "")


def test_a_look_goes_on_where_it_was_although_tasks_before_have_left(queue: TaskQueue, redis: Redis) -> None:
    tasks = push_many(6)
    move(redis, tasks, "dead", 1_000)
    redis.zadd(keys.QueueKeys("default", "default").dead, dict.fromkeys(tasks[:2], 7))  # at once
    first = queue.look("default", "dead", bool, most=2)
    queue.resend("default", ids(first.found))

    gone = queue.look("default", "dead", bool, most=2, after=first.after)
    queue.delete("default", "dead", [tasks[5], tasks[4]])
    there = queue.look("default", "dead", bool, most=1, after=gone.after)
    queue.delete("default", "dead", ids(there.found))

    assert ids(first.found) == [tasks[5], tasks[4]]
    assert ids(gone.found) == [tasks[3], tasks[2]]
    assert ids(there.found) == [tasks[1]]
    assert ids(queue.look("default", "dead", bool, most=2, after=there.after).found) == [tasks[0]]


@pytest.mark.parametrize("after", ["x", ":", "1", "nan:a", "inf:", "-inf:x", "1e999:x"])
def test_a_place_that_makes_no_sense_is_no_error(queue: TaskQueue, after: str) -> None:
    push_many(3)

    assert queue.look("default", "ready", bool, after=after).looked_at in (0, 3)


@pytest.mark.parametrize(("state", "unit"), [("dead", 1_000), ("successful", 1_000), ("delayed", 1_000_000)])
def test_only_tasks_of_the_time_are_seen(queue: TaskQueue, redis: Redis, state: State, unit: int) -> None:
    move(redis, push_many(10), state, unit)

    def look(since: int | None, until: int | None, most: int = 100) -> tuple[int, int]:
        first, last = (
            None if minutes is None else NOON + timedelta(minutes=minutes) for minutes in (since, until)
        )
        found = queue.look("default", state, bool, since=first, until=last, most=most)
        return found.looked_at, found.offset

    is_latest_first = state != "delayed"
    assert look(2, 5) == (4, 4 if is_latest_first else 2)
    assert look(None, 5) == (6, 4 if is_latest_first else 0)
    assert look(5, None) == (5, 0 if is_latest_first else 5)
    assert look(20, None)[0] == 0
    assert look(0, None, most=3)[0] == 3


PROGRESS = keys.BackendKeys("default").progress
LONG = Progress(-1, None, "x" * 10_000)
HALF = Progress(1, 2, "halb fertig \u2028\n", datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC))


@pytest.mark.parametrize(
    ("progress", "percent"),
    [(HALF, 50), (Progress(0), None), (Progress(1, 0), None), (Progress(2.5, 0.5), 100), (LONG, None)],
)
def test_progress_is_read_as_it_was_said(queue: TaskQueue, progress: Progress, percent: float | None) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    assert found(task_id).progress is None

    assert consumer.progress(claimed, progress) is True

    assert found(task_id).progress == progress
    assert [info.progress for info in queue.tasks("default", "running")] == [progress]
    assert progress.percent == percent


@pytest.mark.parametrize("end", [succeeded, failed, to_retry])
def test_a_failed_task_shows_its_last_progress_and_no_later(
    queue: TaskQueue, redis: Redis, end: type
) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    consumer.progress(claimed, HALF)
    hand_in(consumer, end(claimed))

    assert consumer.progress(claimed, Progress(1)) is False

    assert found(task_id).progress == (None if end is succeeded else HALF)
    assert redis.hlen(PROGRESS) == (end is not succeeded)


def test_progress_of_a_newer_release_hides_nothing_else(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO, [5], delay=60)
    come_due(redis, task_id)
    claim_one(Consumer())
    redis.hset(PROGRESS, task_id, '{"v": 2, "percent": 5}')

    info = found(task_id)

    assert (info.args, info.state, info.progress) == ([5], "running", None)
