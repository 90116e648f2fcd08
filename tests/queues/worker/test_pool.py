"""The threads of a worker, and how many of them work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from components.services.queues import Claimed, Consumer
from components.services.queues.worker.pool import Pool
from components.services.queues.worker.runs import Run, ServerClock
from tests.support.waiting import eventually


class Crowded:
    """A pool of three threads, whose runs last until they are let go."""

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.begun: list[str] = []
        self.rests = 0
        self.pool = Pool(3, self._serve, self._rest)

    def _serve(self, run: Run) -> None:
        self.begun.append(run.claimed.id)
        assert self.gate.acquire(timeout=10)

    def _rest(self) -> None:
        self.rests += 1

    def add(self, *task_ids: str) -> None:
        for task_id in task_ids:
            claimed = Claimed(task_id, "default", "token", 1, b"", b"", b"")
            self.pool.add(Run(claimed, Consumer(), ServerClock()))

    def let_go(self, number: int) -> None:
        self.gate.release(number)


@pytest.fixture
def crowded() -> Iterator[Crowded]:
    crowded = Crowded()
    yield crowded
    crowded.pool.take_back()
    crowded.let_go(100)
    crowded.pool.end()
    for thread in crowded.pool._threads:
        thread.join(10)
        assert not thread.is_alive()


def begins(crowded: Crowded, *task_ids: str) -> bool:
    return eventually(lambda: sorted(crowded.begun) == [*task_ids])


def test_as_many_runs_begin_as_there_are_threads(crowded: Crowded) -> None:
    crowded.add("a", "b", "c", "d")

    assert begins(crowded, "a", "b", "c")
    assert crowded.pool.waiting == 1
    crowded.let_go(1)
    assert begins(crowded, "a", "b", "c", "d")


def test_in_a_narrow_pool_one_run_begins_at_a_time(crowded: Crowded) -> None:
    crowded.pool.narrow()
    crowded.add("a", "b", "c")

    assert begins(crowded, "a")
    crowded.let_go(1)
    assert begins(crowded, "a", "b")
    assert (crowded.pool.waiting, len(crowded.pool._threads)) == (1, 1)


def test_a_pool_that_is_widened_begins_what_waits(crowded: Crowded) -> None:
    crowded.pool.narrow()
    crowded.add("a", "b", "c")
    assert begins(crowded, "a")

    crowded.pool.widen()

    assert begins(crowded, "a", "b", "c")


def test_a_pool_that_is_narrowed_ends_what_has_begun_and_goes_on_with_one_thread(crowded: Crowded) -> None:
    crowded.add("a", "b", "c", "d", "e")
    assert begins(crowded, "a", "b", "c")

    crowded.pool.narrow()
    crowded.let_go(3)

    assert begins(crowded, "a", "b", "c", "d")
    assert eventually(lambda: crowded.rests == 2)
    assert crowded.pool.waiting == 1


def test_a_thread_rests_when_nothing_waits(crowded: Crowded) -> None:
    crowded.add("a")
    assert begins(crowded, "a")
    assert crowded.rests == 0

    crowded.let_go(1)

    assert eventually(lambda: crowded.rests == 1)


def test_what_is_taken_back_never_begins(crowded: Crowded) -> None:
    crowded.pool.narrow()
    crowded.add("a", "b", "c")
    assert begins(crowded, "a")

    assert [claimed.id for claimed in crowded.pool.take_back()] == ["b", "c"]

    crowded.let_go(1)
    assert eventually(lambda: crowded.rests == 1)
    assert crowded.begun == ["a"]


@pytest.mark.parametrize("end", [Pool.widen, Pool.end], ids=["widen", "end"])
def test_threads_take_shorter_turns_only_while_the_pool_is_narrow(
    crowded: Crowded, end: Callable[[Pool], None]
) -> None:
    usual = sys.getswitchinterval()
    crowded.pool.narrow()
    assert sys.getswitchinterval() < usual

    end(crowded.pool)

    assert sys.getswitchinterval() == usual


def test_no_run_is_forgotten_however_often_the_pool_is_narrowed_and_widened() -> None:
    done: list[str] = []
    pool = Pool(4, lambda run: done.append(run.claimed.id))
    expected = [str(number) for number in range(5_000)]
    for number, task_id in enumerate(expected):
        pool.add(Run(Claimed(task_id, "default", "token", 1, b"", b"", b""), Consumer(), ServerClock()))
        if number % 3 == 0:
            (pool.narrow if number % 2 else pool.widen)()

    assert eventually(lambda: len(done) == len(expected))
    pool.end()
    assert sorted(done, key=int) == expected
