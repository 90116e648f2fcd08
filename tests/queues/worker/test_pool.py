"""The threads of a worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from components.services.queues import Claimed, Consumer
from components.services.queues.worker.pool import Pool
from components.services.queues.worker.runs import Run, ServerClock
from tests.support.waiting import eventually


class Crowded:
    """A pool of two threads, whose runs last until they are let go."""

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.begun: list[str] = []
        self.rests = 0
        self.pool = Pool(2, self._serve, self._rest)

    def _serve(self, run: Run) -> None:
        self.begun.append(run.claimed.id)
        assert self.gate.acquire(timeout=10)

    def _rest(self) -> None:
        self.rests += 1

    def add(self, *task_ids: str) -> None:
        for task_id in task_ids:
            claimed = Claimed(task_id, "default", "token", 1, b"", b"", b"")
            self.pool.add(Run(claimed, Consumer(), ServerClock()))

    def begins(self, *task_ids: str) -> bool:
        return eventually(lambda: sorted(self.begun) == [*task_ids])


@pytest.fixture
def crowded() -> Iterator[Crowded]:
    crowded = Crowded()
    yield crowded
    crowded.pool.take_back()
    crowded.gate.release(100)
    crowded.pool.end()
    for thread in crowded.pool._threads:
        thread.join(10)
        assert not thread.is_alive()


def test_as_many_runs_begin_as_there_are_threads_and_these_rest_when_nothing_waits(crowded: Crowded) -> None:
    crowded.add("a", "b", "c")
    assert crowded.begins("a", "b")
    assert (crowded.pool.waiting, crowded.rests) == (1, 0)

    crowded.gate.release(1)
    assert crowded.begins("a", "b", "c")
    assert (crowded.pool.waiting, crowded.rests) == (0, 0)

    crowded.gate.release(2)
    assert eventually(lambda: crowded.rests == 2)
    crowded.add("d")
    assert crowded.begins("a", "b", "c", "d")
    assert len(crowded.pool._threads) == 2


def test_what_is_taken_back_never_begins(crowded: Crowded) -> None:
    crowded.add("a", "b", "c", "d")
    assert crowded.begins("a", "b")

    assert [claimed.id for claimed in crowded.pool.take_back()] == ["c", "d"]
    assert [claimed.id for claimed in crowded.pool.held] == ["a", "b"]

    crowded.gate.release(2)
    assert eventually(lambda: crowded.rests == 2)
    assert crowded.begun == ["a", "b"]


def test_no_run_is_forgotten() -> None:
    done: list[str] = []
    pool = Pool(4, lambda run: done.append(run.claimed.id))
    expected = [str(number) for number in range(5_000)]
    for task_id in expected:
        pool.add(Run(Claimed(task_id, "default", "token", 1, b"", b"", b""), Consumer(), ServerClock()))

    assert eventually(lambda: len(done) == len(expected))
    pool.end()
    assert sorted(done, key=int) == expected
