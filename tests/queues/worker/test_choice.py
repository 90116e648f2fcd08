"""How what a worker wants is divided among its queues; tests/queues/test_queues_order.py has what they get."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.queues import Claimed, Consumer
from components.services.queues.worker.choice import QueueChoice
from tests.support.queues import claim, push_many


def test_strict_order_asks_each_queue_for_all() -> None:
    choice = QueueChoice(["high", "mail", "low"])

    for _ in range(3):
        assert list(choice.shares(4).items()) == [("high", 4), ("mail", 4), ("low", 4)]


@pytest.mark.parametrize("want", [1, 2, 9])
def test_else_the_queues_share_by_weight(want: int) -> None:
    in_turn, weighted = (
        QueueChoice(["a", "b", "c"], round_robin=True),
        QueueChoice(["a", "b"], {"a": 3, "b": 1}),
    )

    assert in_turn.shares(want) == pytest.approx(dict.fromkeys("abc", want / 3))
    assert weighted.shares(want) == pytest.approx({"a": want * 3 / 4, "b": want / 4})


def test_each_request_begins_where_the_last_one_ended() -> None:
    choice = QueueChoice(["a", "b"], round_robin=True, turn=40)

    assert [choice.shares(want).turn for want in (1, 3, 0, 2)] == [40, 41, 44, 44]


def queues_of(tasks: list[Claimed]) -> str:
    return "".join(task.queue for task in tasks)


def test_tasks_of_all_queues_are_run_intermingled_and_those_of_each_in_order(redis: Redis) -> None:
    push_many(6, queue="a")
    push_many(2, queue="b")
    claimed = claim(Consumer(), 8, QueueChoice(["a", "b"], {"a": 3, "b": 1}).shares(8))

    arranged = QueueChoice(["a", "b"], {"a": 3, "b": 1}).arranged(claimed)

    assert queues_of(claimed) == "aaaaaabb"
    assert queues_of(arranged) == "aabaaaba"
    assert [task for task in arranged if task.queue == "a"] == claimed[:6]
    assert QueueChoice(["a", "b"]).arranged(claimed) == claimed  # in strict order
