"""What runs beside what: the concurrency limits of tasks, and suspects, under which a worker has died."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.kit.client import get_client
from components.services.queues import Claimed, Concurrency, Consumer, TaskQueue, keys, task
from components.services.queues.worker.concurrency import Limit
from components.services.queues.worker.crash_suspects import MOST, PUT_OFF, Suspects
from components.services.queues.worker.runs import Run, ServerClock
from components.services.queues.worker.worker import Worker
from components.services.semaphores import Semaphore
from tests import tasks
from tests.fixtures.worker import NOTE, WAIT, MakeWorker, counts, push, reaches
from tests.support.queues import claim, end_lease, found, ids, options, step
from tests.support.waiting import eventually

Start = Callable[[Worker], Worker]

lock = threading.Lock()
gate = threading.Event()
running: list[str] = []
most = 0
order: list[Any] = []


@task(concurrency=2)
def limited(value: Any = None) -> None:
    _run("limited", value)


@task(concurrency=1)
def alone(value: Any = None) -> None:
    _run("alone", value)


@task(concurrency=Concurrency(2, "tests.shared"))
def one_of_two(value: Any = None) -> None:
    _run("one of two", value)


@task(concurrency=Concurrency(2, "tests.shared"))
def other_of_two(value: Any = None) -> None:
    _run("other of two", value)


@task(concurrency=Concurrency(1, lambda value: str(value)))
def one_each(value: Any = None) -> None:
    _run("one each", value)


@task
def free(value: Any = None) -> None:
    _run("free", value)


@task(concurrency=1)
def failing() -> None:
    raise ValueError("no")


def _run(name: str, value: Any) -> None:
    global most
    with lock:
        running.append(name)
        order.append(value)
        most = max(most, len(running))
    gate.wait(60)
    with lock:
        running.remove(name)


@pytest.fixture(autouse=True)
def fresh(start: Start) -> Iterator[None]:
    """Begun after *start*, it ends before it: a worker that is stopped waits for tasks that wait for the gate."""
    global most
    gate.clear()
    order.clear()
    most = 0
    yield
    gate.set()


@pytest.fixture
def serial() -> Iterator[None]:
    with options(serial=["*.free"]):
        yield


def path(declared: Any) -> str:
    return f"{__name__}.{declared.func.__name__}"


def parked(name: str, queue: str = "default") -> int:
    return int(get_client().zcard(keys.BackendKeys("default").parked(f"{name}:{queue}")))


def test_no_more_run_than_the_limit_in_all_workers_together(make_worker: MakeWorker, start: Start) -> None:
    for _ in range(2):
        start(make_worker(concurrency=4))
    push(path(limited), 8)

    assert eventually(lambda: len(running) == 2)
    assert eventually(lambda: counts().get("running") == 2 and counts().get("delayed") == 6)
    gate.set()

    assert reaches(successful=8)
    assert most == 2


def test_those_that_wait_come_by_priority_and_then_in_order(make_worker: MakeWorker, start: Start) -> None:
    worker = make_worker(concurrency=4)
    start(worker)
    push(path(alone), 1)
    assert eventually(lambda: len(running) == 1)
    order.clear()
    queue = TaskQueue()
    for number in range(3):
        queue.push(path(alone), [number])
    queue.push(path(alone), ["urgent"], priority=10)
    # While it looks whether there is room by now, a task that finds room is made due beside the first.
    assert eventually(lambda: parked(f"task:{path(alone)}") == 4 and not worker._given_back)

    gate.set()

    assert reaches(successful=5)
    assert order == ["urgent", 0, 1, 2]


@pytest.mark.parametrize(
    ("calls", "waiting", "begun"),
    [([one_of_two] * 3 + [other_of_two] * 3, 4, 2), ([one_each] * 3, 1, 2), ([free] * 3, 1, 2)],
    ids=["shared by two tasks", "for each argument", "equal calls of a serial task"],
)
def test_a_limit_can_be_shared_or_hold_for_each_of_something(
    make_worker: MakeWorker, start: Start, serial: None, calls: list[Any], waiting: int, begun: int
) -> None:
    start(make_worker(concurrency=6))
    for number, each in enumerate(calls):
        TaskQueue().push(path(each), ["ab"[number % 2]])
    TaskQueue().push("tests.tasks.note", ["meanwhile"])

    assert eventually(lambda: counts().get("delayed") == waiting)
    assert eventually(lambda: len(running) == begun)  # who has a permit may begin after others were parked
    assert eventually(lambda: counts().get("successful") == 1)
    gate.set()

    assert reaches(successful=len(calls) + 1)
    assert most == begun


def test_a_permit_is_given_back_by_what_fails(make_worker: MakeWorker, start: Start) -> None:
    start(make_worker(concurrency=3))
    push(path(failing), 5)
    TaskQueue().push(path(one_each), ["x" * 1_000])  # the name of its limit is too long

    assert reaches(dead=6)
    assert Semaphore(f"task:{path(failing)}", limit=1).try_acquire()


def test_to_wait_for_room_is_no_attempt(make_worker: MakeWorker, start: Start) -> None:
    permit = Semaphore(f"task:{path(failing)}", limit=1).acquire()
    start(make_worker())
    [task_id] = push(path(failing))
    assert eventually(lambda: counts().get("delayed") == 1)
    waiting = TaskQueue().get(task_id)
    assert waiting
    assert (waiting.state, waiting.starts, waiting.errors) == ("delayed", 0, ())

    permit.release()
    Consumer().unpark(f"task:{path(failing)}", by="test")

    assert reaches(dead=1)
    dead = TaskQueue().get(task_id)
    assert dead
    assert dead.starts == 1


def test_a_run_that_ended_before_the_task_was_parked_is_noticed(redis: Redis) -> None:
    push(path(limited))
    consumer = Consumer()
    limit = Limit("limit", 1, 30)
    consumer.park("limit", claim(consumer, 1))

    limit.look_again(consumer, by="a")

    assert len(claim(consumer, 1)) == 1
    assert Semaphore("limit", limit=1).try_acquire()


def test_the_next_task_comes_from_queues_that_run_by_priority(redis: Redis) -> None:
    consumer, queue = Consumer(), TaskQueue()
    for name, priority in [("paused", 50), ("unserved", 10), ("default", 0), ("other", -10)]:
        for _ in range(120 if name == "paused" else 2):
            queue.push(NOTE, ["x"], queue=name, priority=priority)
        consumer.park("limit", claim(consumer, 120, [name]))
    queue.pause("paused")

    def next_due(call: str) -> list[str]:
        assert consumer.unpark("limit", call)
        return [task.queue for name in ("paused", "default", "other") for task in claim(consumer, 9, [name])]

    assert next_due("first") == []
    assert [parked("limit", name) for name in ("paused", "unserved", "default", "other")] == [120, 1, 2, 2]
    assert next_due("second") == ["default"]  # a task is due in the other, and nobody moves it
    step(consumer, 0, ["unserved"])  # it is ready there, and nobody claims it
    assert [next_due("third"), next_due("fourth")] == [["default"], ["other"]]
    queue.resume("paused")
    assert next_due("fifth") == ["paused"]


def test_without_redis_nothing_is_run_or_lost(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, consumer = Limit("limit", 1, 30), Consumer()

    def away(*args: Any, **kwargs: Any) -> None:
        raise RedisUnavailable("away")

    monkeypatch.setattr(Semaphore, "try_acquire", away)
    monkeypatch.setattr(Semaphore, "info", away)
    with limit.permit(consumer, owner="", by="a") as has_room:
        assert not has_room
    limit.look_again(consumer, by="a")
    monkeypatch.undo()
    monkeypatch.setattr(Semaphore, "release", away)
    with limit.permit(consumer, owner="", by="a") as has_room:
        assert has_room


def dead_under_them(redis: Redis, number: int, crashes: int = 1, name: str = NOTE) -> list[str]:
    """So many tasks, of each of which *crashes* workers have died."""
    pushed = push(name, number)
    for _crash in range(crashes):
        claim(Consumer(), number)
        end_lease(redis, *pushed)
    return pushed


def suspect(crashes: int) -> Claimed:
    """Claimed after so many workers have died under it."""
    run = f"1 running token {crashes + 1} {crashes} 0 0 0 0 0 worker"
    return Claimed("id", "default", "token", crashes + 1, b"", run.encode(), b"")


def begun(claimed: Claimed, at: float | None) -> Run:
    run = Run(claimed, Consumer(), ServerClock())
    run.started_at = at
    return run


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("crashes", "max_crashes", "together"),
    [(0, 3, 2 * MOST), (1, 3, MOST), (2, 3, 1), (1, 2, 1), (2, 9, MOST // 5)],
)
def test_few_suspects_run_together(redis: Redis, crashes: int, max_crashes: int, together: int) -> None:
    pushed = dead_under_them(redis, 2 * MOST, crashes)
    suspects = Suspects(max_crashes)

    admitted = [task for task in claim(Consumer(), 2 * MOST) if suspects.refused_for(task) is None]

    assert ids(admitted) == pushed[:together]


def test_a_worker_that_runs_one_alone_leaves_others_to_other_workers_and_runs_other_tasks(
    redis: Redis, make_worker: MakeWorker, start: Callable[[Worker], Worker]
) -> None:
    pushed = dead_under_them(redis, 2, crashes=2, name=WAIT)
    for _worker in range(2):
        start(make_worker(concurrency=2))

    def holders() -> set[str]:
        return {info.worker_ids[-1] for id in pushed if (info := found(id)).state == "running"}

    assert eventually(lambda: len(holders()) == 2)
    push(NOTE, 20)
    assert reaches(running=2, successful=20)
    tasks.gate.set()
    assert reaches(successful=22)


def test_a_burst_runs_all_suspects_and_none_begins_before_the_others_are_given_back(
    redis: Redis, make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a suspect that kills the worker, no other dies."""
    dead_under_them(redis, 3, crashes=2)
    worker, held = make_worker(concurrency=3, burst=True), []
    begin = worker._pool.add
    monkeypatch.setattr(worker._pool, "add", lambda run: held.append(counts()["running"]) or begin(run))
    worker.run()

    assert held[0] == 1
    assert counts() == {"successful": 3}


@pytest.mark.parametrize(("crashes", "max_crashes"), [(2, 3), (1, 2), (3, 9)])
def test_one_that_shall_be_alone_and_others_are_put_off_in_turn(crashes: int, max_crashes: int) -> None:
    suspects, alone = Suspects(max_crashes), suspect(crashes)
    assert suspects.refused_for(alone) is None
    suspects.add(run := begun(alone, at=0.0))

    suspects.look({alone: run})
    assert [suspects.refused_for(suspect(other)) for other in (1, crashes, 0)] == [PUT_OFF, PUT_OFF, None]
    assert suspects.are_waiting
    assert not suspects.are_for_others

    suspects.look({})
    other = suspect(crashes=1)
    assert suspects.refused_for(other) is None
    suspects.add(run := begun(other, at=0.0))

    suspects.look({other: run})
    assert suspects.refused_for(suspect(crashes)) == PUT_OFF

    suspects.look({})
    assert suspects.refused_for(suspect(crashes)) is None
