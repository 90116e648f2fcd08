"""The page of periodic tasks, and running one now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.utils.html import strip_tags

from components.services.queues import Consumer, NewTask, TaskQueue, Ticks, keys
from components.services.queues.facts import to_us
from tests.queues.admin.periodic import HOURLY, NIGHTLY, UNIQUE, declare_only
from tests.support.queues import ECHO, claim, failed, hand_in, places, succeeded

ROOT = "/admin/components/queue/"
DASH = "\N{EN DASH}"

pytestmark = pytest.mark.usefixtures("redis", "declared")


@pytest.fixture
def declared():
    with declare_only(HOURLY, NIGHTLY, UNIQUE):
        yield


def words(response):
    return " ".join(unescape(strip_tags(response.text)).split())


def cells(client, entry):
    html = client.get(f"{ROOT}periodic/").text
    rows = dict(re.findall(r'<tr data-key="([^"]*)"[^>]*>(.*?)</tr>', html, re.DOTALL))
    row = {unescape(name): found for name, found in rows.items()}[entry.name]
    return [" ".join(unescape(strip_tags(cell)).split()) for cell in re.split(r"</t[hd]>", row)]


def run(client, entry):
    return client.post(f"{ROOT}run/?{urlencode({'alias': 'default', 'periodic': entry.name})}", follow=True)


def ticked(redis, entry, at):
    redis.zadd(keys.BackendKeys("default").periodic, {entry.name: to_us(at)})


def test_each_has_its_schedule_zone_policy_and_queue(viewer):
    name, schedule, zone, _next, _last, missed, queue, *_rest = cells(viewer, NIGHTLY)

    assert name == 'tests.queues.admin.periodic.sweep ["<b>month</b>"]'
    assert (schedule, zone, missed, queue) == ("0 3 * * *", "Europe/Berlin", "skip them", "default")
    assert cells(viewer, HOURLY)[1:3] == ["every 1 hour", "UTC"]
    assert [cells(viewer, entry)[5] for entry in (HOURLY, UNIQUE)] == ["run once", "run all of them"]


def test_the_next_and_the_last_run_are_shown(viewer, redis):
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    ticked(redis, HOURLY, hour)

    _name, _schedule, _zone, following, last, *_rest = cells(viewer, HOURLY)

    assert re.search(r" in \d+ (min|s)", following) or "in 1 h" in following
    assert last.endswith("ago")


def test_before_a_worker_has_seen_it_there_is_no_next_run(viewer):
    assert cells(viewer, HOURLY)[3:5] == ["not known: no worker has started since it was declared", DASH]


def test_a_run_that_did_not_come_is_overdue(viewer, redis):
    ticked(redis, HOURLY, datetime(2024, 1, 1, tzinfo=UTC))

    assert cells(viewer, HOURLY)[3].startswith("Overdue, since 2024-01-01 01:00:00")


def test_running_one_now_is_asked_done_and_logged(operator):
    address = f"{ROOT}run/?{urlencode({'alias': 'default', 'periodic': NIGHTLY.name})}"

    question = words(operator.get(address))
    assert places() == {}
    response = run(operator, NIGHTLY)

    [task_id] = places()["ready"]
    info = TaskQueue().get(task_id)
    said = f"Put tests.queues.admin.periodic.sweep into the queue default, as the task {task_id}."
    assert "Its next scheduled run stays as it is." in question
    assert (info.name, info.args, info.queue) == (
        "tests.queues.admin.periodic.sweep",
        ["<b>month</b>"],
        "default",
    )
    assert said in words(response)
    assert [(entry.object_id, entry.change_message) for entry in LogEntry.objects.all()] == [
        ("default/default", said)
    ]


def test_a_run_by_hand_takes_no_tick_away(operator):
    Ticks().declare([HOURLY.name])
    before = Ticks().last([HOURLY.name])

    run(operator, HOURLY)

    assert Ticks().last([HOURLY.name]) == before


def test_a_unique_one_that_is_unfinished_is_not_run_twice(operator):
    run(operator, UNIQUE)
    [task_id] = places()["ready"]

    response = run(operator, UNIQUE)

    assert f"is unique, and {task_id} is unfinished, so no second one was added." in words(response)
    assert places() == {"ready": [task_id]}
    assert LogEntry.objects.count() == 1


def test_one_that_cannot_be_pushed_says_why(operator, settings):
    settings.TASKS = {
        "default": {
            "BACKEND": "components.tasks.RedisBackend",
            "QUEUES": ["mail"],
            "OPTIONS": {},
        }
    }

    response = run(operator, HOURLY)

    assert "The task tests.queues.admin.periodic.sweep cannot be run:" in words(response)
    assert places() == {}
    assert not LogEntry.objects.exists()


def change(client, verb, entry):
    address = f"{ROOT}{verb}/?{urlencode({'alias': 'default', 'periodic': entry.name})}"
    return client.post(address, follow=True)


def test_one_can_be_paused_and_resumed(operator):
    Ticks().declare([HOURLY.name])

    paused = change(operator, "pause-periodic", HOURLY)

    assert "Paused tests.queues.admin.periodic.sweep." in words(paused)
    assert cells(operator, HOURLY)[3] == "Paused"
    assert "Resume" in cells(operator, HOURLY)[8]
    assert "is paused already" in words(change(operator, "pause-periodic", HOURLY))

    resumed = change(operator, "resume-periodic", HOURLY)

    assert "Resumed tests.queues.admin.periodic.sweep." in words(resumed)
    assert "in " in cells(operator, HOURLY)[3]
    assert "is not paused" in words(change(operator, "resume-periodic", HOURLY))
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == [
        "Paused tests.queues.admin.periodic.sweep.",
        "Resumed tests.queues.admin.periodic.sweep.",
    ]


def test_the_last_runs_are_shown_with_their_ends(viewer):
    assert cells(viewer, HOURLY)[7] == "None yet"
    hour = datetime(2026, 1, 1, tzinfo=UTC)
    new = [NewTask(name=ECHO, tick=(HOURLY.name, hour + timedelta(hours=number))) for number in range(3)]
    TaskQueue().push_many(new)
    consumer = Consumer()
    good, bad, _running = claim(consumer, 3)
    hand_in(consumer, succeeded(good), failed(bad))

    assert cells(viewer, HOURLY)[7] == "Running 1 of the last 3 failed"
    graph = viewer.get(f"{ROOT}periodic/").text
    assert re.findall(r'<rect class="(\w+)"', graph) == ["successful", "failed", "running"]
