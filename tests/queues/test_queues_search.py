"""Searching a state of a queue: by id, name, arguments or the latest error, in the order of the listing."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.queues import Consumer, NewTask, TaskQueue
from tests.support.queues import (
    claim,
    claim_one,
    come_due,
    failed,
    hand_in,
    ids,
    push_many,
    to_retry,
)


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
