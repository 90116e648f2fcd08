"""What the verdict of the chaos test counts as waiting."""

from __future__ import annotations

import pytest

from tests.chaos.waiting import Countable, without

INFINITY = float("inf")


@pytest.mark.parametrize(
    ("begin", "end", "counted"),
    [(0, 100, 14), (0, 10, 0), (12, 17, 5), (17, 23, 3), (20, 30, 1), (40, 60, 4), (60, 100, 0)],
)
def test_waiting_counts_while_some_worker_is_idle_and_there_is_no_excuse(
    begin: float, end: float, counted: float
) -> None:
    idle = [(10.0, 15.0), (12.0, 20.0), (25.0, 45.0)]
    excuses = [(5.0, 11.0), (21.0, 24.0), (26.0, 41.0), (28.0, 30.0)]  # leaves 11 to 20, 25 to 26, 41 to 45

    assert Countable(idle, excuses).between(begin, end) == counted


def test_an_excuse_without_an_end_excuses_for_ever() -> None:
    assert Countable([(0.0, 10.0)], [(4.0, INFINITY)]).between(0.0, 20.0) == 4.0


@pytest.mark.parametrize(
    ("holes", "left"),
    [
        ([], [(1, 4), (6, 9)]),
        ([(2, 3)], [(1, 2), (3, 4), (6, 9)]),
        ([(7, 8), (0, 2), (3, 7)], [(2, 3), (8, 9)]),
        ([(0, 5), (1, 2), (6, 9)], []),
        ([(4, 6), (8, 12), (7, 20)], [(1, 4), (6, 7)]),
    ],
)
def test_spans_without_holes_are_what_is_left_of_them(
    holes: list[tuple[float, float]], left: list[tuple[float, float]]
) -> None:
    assert list(without([(1.0, 4.0), (6.0, 9.0)], holes)) == left
