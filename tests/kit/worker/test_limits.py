"""When a worker has done enough."""

from __future__ import annotations

import psutil
import pytest

from components.kit.worker import limits
from components.kit.worker.limits import Limits, memory

MANY = range(200)  # draws


def test_the_remaining_tasks_are_counted_down_to_zero() -> None:
    limit = Limits(max_tasks=3)

    assert [limit.left(claimed) for claimed in range(5)] == [3, 2, 1, 0, 0]


def test_a_limit_of_tasks_is_lowered_by_a_tenth_at_most() -> None:
    assert {Limits(max_tasks=100).max_tasks for _ in MANY} <= set(range(90, 101))
    assert len({Limits(max_tasks=100).max_tasks for _ in MANY}) > 1


@pytest.mark.parametrize("tasks", [1, 9])
def test_a_limit_of_few_tasks_is_kept_as_it_is(tasks: int) -> None:
    assert {Limits(max_tasks=tasks).max_tasks for _ in MANY} == {tasks}


def test_limits_of_memory_and_time_are_lowered_by_a_tenth_at_most() -> None:
    drawn = [Limits(max_memory=100, max_time=1000) for _ in MANY]

    assert all(90 <= limit.max_memory <= 100 and 900 <= limit.max_time <= 1000 for limit in drawn)
    assert len({limit.max_memory for limit in drawn}) > 1
    assert len({limit.max_time for limit in drawn}) > 1


def test_the_memory_in_use_is_that_of_the_process() -> None:
    held = b"x" * (64 << 20)

    assert abs(memory() - psutil.Process().memory_info().rss / (1 << 20)) < 8
    assert len(held) / (1 << 20) < memory()


def test_where_there_is_no_proc_the_peak_counts(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(limits, "_STATM", tmp_path / "statm")

    assert memory() > psutil.Process().memory_info().rss / (1 << 20) - 8


def test_a_limit_of_memory_is_reached_when_so_much_is_in_use() -> None:
    assert Limits(max_memory=1).reached().endswith("MB of memory in use, 1 allowed")
    assert Limits(max_memory=1_000_000).reached() is None


def test_a_limit_of_time_is_reached_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = Limits(max_time=100)
    assert limit.reached() is None

    began = limit._began_at
    monkeypatch.setattr(limit, "_began_at", began - 101)

    assert limit.reached().startswith("it has run for 101 s")
