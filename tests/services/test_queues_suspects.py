"""Tasks under which a worker has died are suspects: who asks for few of them at a time finds out which one it was."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis import Redis

from components.services.queues import Claimed, Consumer
from tests.support.queues import claim, end_lease, ids, options, places, push_many

pytestmark = pytest.mark.usefixtures("redis")

WATCHED = timedelta(milliseconds=50)


def dead_under_them(redis: Redis, number: int) -> list[str]:
    """So many tasks of which a worker has died."""
    pushed = push_many(number)
    claim(Consumer(), number)
    end_lease(redis, *pushed)
    return pushed


def claim_with(consumer: Consumer, *, suspects: int, want: int = 10) -> list[Claimed]:
    return consumer.advance(consumer.request({"default": want}, want, suspects=suspects)).claimed


def test_a_task_is_a_suspect_when_a_worker_has_died_under_it(redis: Redis) -> None:
    dead_under_them(redis, 1)
    push_many(1)

    assert [task.is_suspect for task in claim(Consumer(), 2)] == [True, False]


def test_as_many_suspects_are_claimed_as_are_wanted_and_the_others_keep_their_places(redis: Redis) -> None:
    suspects = dead_under_them(redis, 4)
    others = push_many(2)

    assert ids(claim_with(Consumer(), suspects=1)) == [suspects[0], *others]
    assert places() == {"running": [suspects[0], *others], "ready": suspects[1:]}
    assert ids(claim_with(Consumer(), suspects=0)) == []
    assert ids(claim_with(Consumer(), suspects=2)) == suspects[1:3]
    assert ids(claim(Consumer(), 10)) == suspects[3:]


def test_a_suspect_that_would_die_with_its_next_worker_is_the_only_suspect(redis: Redis) -> None:
    with options(max_crashes=2):
        suspects = dead_under_them(redis, 3)
        others = push_many(1)

        assert ids(claim_with(Consumer(), suspects=0)) == others
        assert ids(claim_with(Consumer(), suspects=5)) == suspects[:1]
        assert ids(claim(Consumer(), 10)) == suspects[1:]


def test_the_oftener_workers_have_died_under_suspects_the_fewer_come_together(redis: Redis) -> None:
    with options(max_crashes=9):
        dead_under_them(redis, 10)
        together = []
        for _crash in range(4):
            claimed = ids(claim_with(Consumer(), suspects=20))
            together.append(len(claimed))
            claim(Consumer(), 10)
            end_lease(redis, *places()["running"])

        assert together == [10, 4, 1, 1]


def test_who_left_suspects_is_told_to_look_again_soon(redis: Redis) -> None:
    dead_under_them(redis, 2)
    consumer = Consumer()
    step = consumer.advance(consumer.request({"default": 2}, 2, suspects=1))

    assert step.look_again_at == step.now + WATCHED


def test_a_suspect_that_was_left_is_not_counted_as_started(redis: Redis) -> None:
    suspects = dead_under_them(redis, 2)
    claim_with(Consumer(), suspects=1)
    [left] = claim_with(Consumer(), suspects=1)

    assert left.id == suspects[1]
    assert left.starts == 2


def test_of_tasks_that_died_together_only_the_killer_goes_to_the_dead_set(redis: Redis) -> None:
    with options(max_crashes=3):
        *innocents, killer = dead_under_them(redis, 5)
        done: list[str] = []
        while claimed := ids(claim_with(Consumer(), suspects=20)):
            if killer in claimed:
                end_lease(redis, *claimed)  # it has killed this worker as well
            else:
                done += claimed

        assert done == innocents
        assert places() == {"running": innocents, "dead": [killer]}
