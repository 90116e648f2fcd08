"""What only looks: one task, counts, pages, searches, workers. It changes nothing, whatever the size of a queue."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.queues import Consumer, NewTask, QueueStats, State, TaskInfo, TaskQueue, keys
from tests.support.monitoring import sent_to
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


def test_every_task_is_counted_in_its_state(queue: TaskQueue, one_of_each: dict[State, str]) -> None:
    push_many(2)
    due = found(one_of_each["delayed"])

    stats = queue.stats("default")

    assert (stats.ready, stats.delayed, stats.running, stats.dead, stats.successful) == (3, 1, 1, 1, 1)
    assert stats.next_due_at == due.run_after
    assert stats.oldest_age is not None
    assert 0 <= stats.oldest_age < 60


@pytest.mark.parametrize("state", STATES)
def test_a_task_is_listed_as_it_is_read(
    queue: TaskQueue, one_of_each: dict[State, str], state: State
) -> None:
    [listed] = queue.tasks("default", state)

    assert listed.id == one_of_each[state]
    assert listed.state == state
    assert queue.get(listed.id) == listed


def test_a_queue_without_tasks_is_empty(queue: TaskQueue) -> None:
    assert queue.stats("nothing") == QueueStats(
        name="nothing",
        ready=0,
        delayed=0,
        running=0,
        dead=0,
        successful=0,
        oldest_age=None,
        next_due_at=None,
        paused=False,
    )
    assert [queue.tasks("nothing", state) for state in STATES] == [[]] * 5
    assert queue.names() == []
    assert queue.all_stats() == []


def test_an_expired_result_is_none_and_no_longer_listed(
    queue: TaskQueue, one_of_each: dict[State, str], redis: Redis
) -> None:
    redis.delete(keys.BackendKeys("default").result(one_of_each["successful"]))

    assert queue.get(one_of_each["successful"]) is None
    assert queue.tasks("default", "successful") == []


def test_queues_are_known_by_name_once_they_had_a_task(queue: TaskQueue) -> None:
    queue.push(ECHO, queue="mail")
    queue.push(ECHO, queue="Übung", delay=60)
    queue.push(ECHO, queue="a b")
    consumer = Consumer()
    hand_in(consumer, succeeded(claim_one(consumer, "mail")))

    assert queue.names() == ["a b", "mail", "Übung"]
    assert [stats.name for stats in queue.all_stats()] == queue.names()
    assert [(stats.ready, stats.delayed, stats.successful) for stats in queue.all_stats()] == [
        (1, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
    ]


@pytest.mark.parametrize("priorities", [[0, 0], [100, -100], [-100, 100]])
def test_the_oldest_age_is_that_of_the_longest_waiting_whatever_its_priority(
    queue: TaskQueue, redis: Redis, priorities: list[int]
) -> None:
    for priority in priorities:
        queue.push(ECHO, priority=priority, delay=60)
    waiting, *others = [info.id for info in queue.tasks("default", "delayed")]
    now = server_time()
    come_due(redis, waiting, at=now - 9_000 * SECOND)
    come_due(redis, *others, at=now - 3_000 * SECOND)
    claim(Consumer(), 0)

    age_seen = queue.stats("default").oldest_age

    assert age_seen is not None
    assert 8_999 < age_seen < 9_600


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

    assert [info.id for info in queue.tasks("default", "successful")] == [tasks[1], tasks[0]]
    assert [info.id for info in queue.tasks("default", "dead")] == [tasks[3], tasks[2]]
    assert [info.id for info in queue.tasks("default", "delayed")] == [sooner, later]


def test_a_page_needs_two_round_trips_whatever_its_length(queue: TaskQueue, server: EmbeddedServer) -> None:
    push_many(100)
    queue.tasks("default", "ready")

    with sent_to(server) as commands:
        queue.tasks("default", "ready", limit=3)

    assert commands == ["ZRANGE", *["HMGET"] * 4]


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


def test_a_worker_is_listed_by_its_heartbeat(queue: TaskQueue) -> None:
    worker, poller = Consumer(concurrency=4), Consumer(kind="poller")
    push_many(1)
    before = server_time()
    worker.renew(["mail", "default"], claim(worker))
    poller.renew(["*"])

    listed = {info.id: info for info in queue.workers()}

    assert set(listed) == {worker.id, poller.id}
    seen = listed[worker.id]
    assert (seen.kind, seen.queues, seen.concurrency, seen.running) == ("worker", ("mail", "default"), 4, 1)
    assert (seen.host, seen.pid, seen.alive) == (socket.gethostname()[:30], os.getpid(), True)
    assert before <= seen.started_at <= seen.seen_at + timedelta(milliseconds=1)
    assert (listed[poller.id].kind, listed[poller.id].queues) == ("poller", ("*",))


def test_the_start_of_a_worker_stays_and_its_last_sign_moves(queue: TaskQueue, redis: Redis) -> None:
    worker = Consumer()
    worker.renew(["default"])
    age(redis, keys.BackendKeys("default").workers, 60 * SECOND)
    [first] = queue.workers()

    worker.renew(["default"])

    [second] = queue.workers()
    assert second.started_at == first.started_at
    assert second.seen_at - first.seen_at >= 60 * SECOND


def test_a_worker_is_alive_for_a_lease_after_its_last_heartbeat(queue: TaskQueue, redis: Redis) -> None:
    with options(lease=600):
        Consumer().renew(["default"])
        age(redis, keys.BackendKeys("default").workers, 500 * SECOND)
        assert [info.alive for info in queue.workers()] == [True]
        age(redis, keys.BackendKeys("default").workers, 101 * SECOND)

        assert [info.alive for info in queue.workers()] == [False]


def test_a_silent_worker_is_forgotten_after_a_day(queue: TaskQueue, redis: Redis) -> None:
    silent, beating = Consumer(), Consumer()
    silent.renew(["default"])
    age(redis, keys.BackendKeys("default").workers, timedelta(days=1))

    beating.renew(["default"])

    assert [info.id for info in queue.workers()] == [beating.id]
    assert redis.zcard(keys.BackendKeys("default").workers) == 1
    assert 86_300_000 < redis.pttl(keys.BackendKeys("default").worker(silent.id)) <= 86_400_000


def test_an_overview_needs_three_round_trips_whatever_there_is(
    queue: TaskQueue, server: EmbeddedServer
) -> None:
    for name in ("mail", "default"):
        push_many(3, queue=name)
        Consumer().renew([name])
    queue.overview()

    with sent_to(server) as commands:
        stats, workers = queue.overview()

    assert commands == ["SMEMBERS", "ZREVRANGE", "EVALSHA", *["HMGET", "GET"] * 2]
    assert [each.name for each in stats] == ["default", "mail"]
    assert workers == queue.workers()


def test_the_last_seen_worker_comes_first(queue: TaskQueue, redis: Redis) -> None:
    workers = [Consumer() for _ in range(3)]
    for worker in workers:
        age(redis, keys.BackendKeys("default").workers, SECOND)
        worker.renew(["default"])

    assert [info.id for info in queue.workers()] == [worker.id for worker in reversed(workers)]


def test_a_task_is_found_by_what_it_is(queue: TaskQueue) -> None:
    tasks = [
        NewTask(name="shop.tasks.send_mail", args=["Jürgen", 12_345], kwargs={"Reply": {"to": ["a@b"]}}),
        NewTask(name="shop.tasks.clean"),
    ]
    mail, clean = ids(queue.push_many(tasks))

    def search(text: str) -> list[str]:
        return ids(queue.search("default", "ready", text))

    for text in (
        "send_mail",
        "SEND_Mail",
        "jürgen",
        "JÜRGEN",
        "12345",
        "reply",
        "a@b",
        mail,
        mail[-6:].upper(),
    ):
        assert search(text) == [mail], text
    assert search("shop.") == search("") == [mail, clean]
    assert search("nothing of that") == []


def test_a_dead_task_is_found_by_its_latest_error(queue: TaskQueue, redis: Redis) -> None:
    first, second = push_many(2)
    consumer = Consumer()
    hand_in(consumer, to_retry(claim_one(consumer), 60, "no ink"))
    come_due(redis, first)
    claimed = claim(consumer, 2)
    hand_in(consumer, *(failed(task, "No Stamps") for task in claimed))

    assert sorted(ids(queue.search("default", "dead", "no stamps"))) == [first, second]
    assert sorted(ids(queue.search("default", "dead", "valueerror"))) == [first, second]
    assert ids(queue.search("default", "dead", "ink")) == []


@pytest.mark.parametrize(
    ("window", "expected"), [(0, 0), (1, 1), (499, 499), (500, 500), (750, 750), (1_000, 900)]
)
def test_a_search_looks_at_a_limited_number_of_listings(queue: TaskQueue, window: int, expected: int) -> None:
    tasks = push_many(900)

    assert ids(queue.search("default", "ready", "echo", window=window)) == tasks[:expected]


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


SCORES: list[tuple[State, int]] = [("dead", 1_000), ("successful", 1_000), ("delayed", 1_000_000)]


def is_any(info: TaskInfo) -> bool:
    return True


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
    first = queue.look("default", "dead", is_any, most=2)
    queue.resend("default", ids(first.found))

    gone = queue.look("default", "dead", is_any, most=2, after=first.after)
    queue.delete("default", "dead", [tasks[5], tasks[4]])
    there = queue.look("default", "dead", is_any, most=2, after=gone.after)

    assert ids(first.found) == [tasks[5], tasks[4]]
    assert ids(gone.found) == [tasks[3], tasks[2]]
    assert ids(there.found) == [tasks[1], tasks[0]]


def test_tasks_that_ended_together_are_not_left_out_when_one_of_them_leaves(
    queue: TaskQueue, redis: Redis
) -> None:
    tasks = push_many(4)
    redis.zadd(keys.QueueKeys("default", "default").dead, dict.fromkeys(tasks, 7))
    first = queue.look("default", "dead", is_any, most=2)
    queue.delete("default", "dead", ids(first.found))

    assert len(queue.look("default", "dead", is_any, most=2, after=first.after).found) == 2


@pytest.mark.parametrize("after", ["x", ":", "1", "nan:a", "inf:", "-inf:x", "1e999:x"])
def test_a_place_that_makes_no_sense_is_no_error(queue: TaskQueue, after: str) -> None:
    push_many(3)

    assert queue.look("default", "ready", is_any, after=after).looked_at in (0, 3)


@pytest.mark.parametrize(("state", "unit"), SCORES)
def test_only_tasks_of_the_time_are_looked_at(
    queue: TaskQueue, redis: Redis, state: State, unit: int
) -> None:
    tasks = push_many(10)
    move(redis, tasks, state, unit)
    minute = timedelta(minutes=1)

    def look(since: datetime | None, until: datetime | None, most: int = 100) -> tuple[int, int]:
        found = queue.look("default", state, is_any, since=since, until=until, most=most)
        return found.looked_at, found.offset

    is_latest_first = state != "delayed"
    assert look(NOON + 2 * minute, NOON + 5 * minute) == (4, 4 if is_latest_first else 2)
    assert look(None, NOON + 5 * minute) == (6, 4 if is_latest_first else 0)
    assert look(NOON + 5 * minute, None) == (5, 0 if is_latest_first else 5)
    assert look(NOON + 20 * minute, None)[0] == 0
    assert look(NOON, None, most=3)[0] == 3
