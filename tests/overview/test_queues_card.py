"""What the overview says of task queues: each line appears, and goes when its cause does."""

from __future__ import annotations

import time

import pytest
from redis import Redis

from components.services.queues import TaskQueue
from tests.overview.reading import lines, links, tiles
from tests.queues.admin import scene
from tests.queues.admin.periodic import HOURLY, declare_only

READY = "components:queues:{default}:ready:mail"


@pytest.fixture
def reader(staff):
    return staff("view_overview", "view_queue")


def age(redis: Redis, seconds: float) -> None:
    """Let all tasks that wait in the queue have waited for this long."""
    for task_id, score in redis.zrange(READY, 0, -1, withscores=True):
        redis.zadd(READY, {task_id: score - seconds * 1_000})


def test_without_trouble_it_says_so(redis, reader):
    scene.worker("mail", concurrency=4)

    assert lines(reader) == []
    assert "All is well" in tiles(reader)["Queues"]
    assert "0 tasks wait" in tiles(reader)["Queues"]
    assert "Busy slots 0 of 4" in tiles(reader)["Queues"]


def test_a_queue_that_nobody_serves(redis, reader):
    scene.ready("mail", count=2)

    [line] = lines(reader)
    assert line.startswith("Problem Queues: 2 tasks wait in the queue mail, the oldest for")
    assert (
        "no worker serves this queue. Waiting tasks Run manage.py runworker --backend default -q mail" in line
    )
    assert links(reader) == ["/admin/components/queue/tasks/?alias=default&queue=mail&state=ready"]
    assert "Problem" in tiles(reader)["Queues"]

    scene.worker("mail")
    assert lines(reader) == []


def test_busy_workers_while_tasks_wait(redis, reader):
    consumer = scene.worker("mail", concurrency=1)
    scene.ready("mail", count=2)
    running = consumer.advance(consumer.request({"mail": 1}, 1)).claimed
    consumer.renew(["mail"], running)
    assert lines(reader) == []  # it has not waited for long

    age(redis, 60)
    [line] = lines(reader)
    assert line.startswith("Warning Queues: All slots of the workers are busy, and 1 task waits, for 1 min")
    assert "Run manage.py runworker --backend default" in line

    scene.worker("mail")
    assert lines(reader) == []


def test_dead_tasks_can_be_sent_again(redis, staff, reader):
    scene.dead("mail")
    scene.worker("mail")

    [line] = lines(reader)
    assert line == "Warning Queues: 1 task of the queue mail has failed for good. Dead tasks"
    changing = staff("view_overview", "view_queue", "change_queue")
    assert lines(changing) == [f"{line} Send them again…"]
    [_page, mend] = links(changing)
    changing.post(mend)
    assert lines(reader) == []


def test_delayed_tasks_that_are_late(redis, reader):
    scene.worker("mail")
    [task_id] = scene.delayed("mail")
    key = "components:queues:{default}:delayed:mail"
    redis.zadd(key, {task_id: (time.time() - 300) * 1e6})

    [line] = lines(reader)
    assert "Problem Queues: Delayed tasks of the queue mail are late: the first was due 5 min" in line
    assert "Run manage.py pollqueue --backend default" in line

    redis.delete(key)
    assert lines(reader) == []


def test_periodic_tasks_that_are_late(redis, reader):
    with declare_only(HOURLY):
        redis.zadd("components:queues:{default}:periodic", {HOURLY.name: (time.time() - 7_200) * 1e6})
        [line] = lines(reader)
        assert line.startswith(
            "Problem Queues: 1 periodic task is late. Periodic tasks Run manage.py pollqueue"
        )
        redis.zadd("components:queues:{default}:periodic", {HOURLY.name: time.time() * 1e6})
        assert lines(reader) == []


def test_many_queues_take_no_more_room_than_a_few(redis, reader):
    for number in range(40):
        scene.ready(f"queue-{number}")

    found = lines(reader)

    assert len(found) == 4
    assert found[-1] == "Problem Queues: Nobody serves 37 more queues in which tasks wait. Queues"


def test_a_paused_queue_waits_on_purpose(redis, reader):
    scene.ready("mail")
    TaskQueue().pause("mail")

    assert lines(reader) == []
