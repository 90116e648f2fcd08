"""In which order queues are asked, and for how much at first."""

from __future__ import annotations

import random
from collections import Counter

from components.workers.choice import QueueChoice


def test_strict_order_asks_the_first_queue_for_all() -> None:
    choice = QueueChoice(["high", "mail", "low"])

    for _ in range(3):
        assert list(choice.shares(4).items()) == [("high", 4), ("mail", 4), ("low", 4)]


def test_round_robin_asks_each_queue_first_in_its_turn() -> None:
    choice = QueueChoice(["a", "b", "c"], round_robin=True)

    firsts = [next(iter(choice.shares(1))) for _ in range(6)]

    assert sorted(firsts[:3]) == ["a", "b", "c"]
    assert firsts[3:] == firsts[:3]


def test_round_robin_divides_what_is_wanted() -> None:
    choice = QueueChoice(["a", "b", "c"], round_robin=True)

    assert set(choice.shares(9).values()) == {3}
    assert set(choice.shares(1).values()) == {1}


def test_weights_divide_what_is_wanted_in_proportion_and_leave_no_queue_out() -> None:
    choice = QueueChoice(["high", "low"], {"high": 3, "low": 1})

    assert choice.shares(8) == {"high": 6, "low": 2}
    assert choice.shares(1) == {"high": 1, "low": 1}


def test_by_weight_a_queue_is_asked_first_as_often_as_its_weight_says() -> None:
    random.seed(42)
    choice = QueueChoice(["high", "low"], {"high": 9, "low": 1})

    firsts = Counter(next(iter(choice.shares(1))) for _ in range(2000))

    assert 1700 < firsts["high"] < 1900


def test_no_queues_are_no_shares() -> None:
    assert QueueChoice([], round_robin=True).shares(4) == {}
