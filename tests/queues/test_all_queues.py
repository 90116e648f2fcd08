"""The tasks of all queues in one order: merged as they would be in one queue, in pieces, and within a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.services.queues import TaskQueue
from components.services.queues.all_queues import AllQueues, by_queue
from components.services.queues.keys import QueueKeys
from tests.queues.admin import scene

STATES = ("ready", "delayed", "running", "dead", "successful")


def put(redis: Redis, state: str, **queues: dict[str, float]) -> None:
    """Store only where tasks are."""
    for name, scores in queues.items():
        keys = QueueKeys("default", name)
        redis.zadd(getattr(keys, state), scores)
        redis.sadd(keys.names, name)


def ids(state: str = "dead", **asked) -> list[str]:
    return [place.id for place in AllQueues("default").places(state, **{"most": 1_000, **asked}).found]


@pytest.mark.parametrize("state", STATES)
def test_tasks_of_all_queues_have_one_order(redis: Redis, state: str) -> None:
    put(redis, state, a={"a1": 1, "a5": 5}, b={"b2": 2}, c={"c3": 3, "c4": 4, "c9": 9})
    in_order = ["a1", "b2", "c3", "c4", "a5", "c9"]

    found = ids(state)

    assert found == (in_order[::-1] if state in ("dead", "successful") else in_order)


@pytest.mark.parametrize("state", ["ready", "dead"])
@pytest.mark.parametrize("most", [1, 3, 7, 100])
def test_pieces_are_the_whole_in_the_same_order_also_with_equal_scores(
    redis: Redis, state: str, most: int
) -> None:
    queues = {f"q{number}": {f"{number}-{each}": each // 7 for each in range(50)} for number in range(5)}
    put(redis, state, **queues)
    whole, pieces, after = ids(state), list[str](), ""

    while True:
        look = AllQueues("default").places(state, most=most, after=after)
        assert look.offset == len(pieces)
        pieces += [place.id for place in look.found]
        if not (after := look.after):
            break

    assert len(whole) == 250
    assert pieces == whole


def test_a_look_goes_on_although_the_task_and_the_queue_where_it_ended_are_gone(redis: Redis) -> None:
    put(redis, "dead", a={"a1": 1, "a2": 2}, b={"b1": 1, "b2": 2}, c={"c1": 1, "c2": 2})
    first = AllQueues("default").places("dead", most=2)

    scene_of = {place.id: place.queue for place in first.found}
    redis.delete(QueueKeys("default", scene_of[first.found[-1].id]).dead)

    assert scene_of == {"a2": "a", "b2": "b"}
    assert ids(after=first.after) == ["c2", "a1", "c1"]


def test_only_a_time_is_looked_at(redis: Redis) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    ms = now.timestamp() * 1_000
    put(redis, "dead", a={"late": ms + 9_000, "in": ms}, b={"early": ms - 9_000, "also": ms - 1})

    assert ids(since=now - timedelta(seconds=1), until=now + timedelta(seconds=1)) == ["in", "also"]
    assert ids(since=now + timedelta(hours=1)) == []


def test_tasks_are_read_and_found_again_where_they_are(redis: Redis) -> None:
    made = {queue: scene.dead(queue, name=f"shop.tasks.{queue}") for queue in ("mail", "news")}
    every = AllQueues("default")
    places = every.places("dead", most=10).found

    assert [info.queue for info in every.read("dead", places)] == ["news", "mail"]
    look = every.look("dead", lambda info: info.name.endswith("mail"), most=10)
    assert [info.id for info in look.found] == [made["mail"]]
    assert look.looked_at == 2
    texts = [str(place) for place in places]
    assert every.present(["dead"], [*texts, "gone mail", "odd"]) == texts
    assert by_queue(texts) == {"news": [made["news"]], "mail": [made["mail"]]}
    assert every.totals.dead == 2


def test_what_cannot_be_read_is_listed_with_its_queue(redis: Redis, queue: TaskQueue) -> None:
    put(redis, "dead", odd={"x": 1})
    every = AllQueues("default")

    [info] = every.read("dead", every.places("dead", most=10).found)

    assert (info.name, info.queue) == ("", "odd")
