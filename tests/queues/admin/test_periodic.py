"""The page of periodic tasks, and running one now."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry
from django.utils.html import strip_tags

from components.services.queues import Consumer, NewTask, TaskQueue, Ticks, keys
from components.services.queues.facts import to_us
from tests.control_room.pages import addresses, done, logged
from tests.queues.admin.scene import HOURLY, NIGHTLY, ROOT, UNIQUE, declare_only
from tests.support.queues import ECHO, claim, failed, hand_in, places, succeeded

url = addresses(ROOT)

pytestmark = pytest.mark.usefixtures("redis", "declared")


@pytest.fixture
def declared():
    with declare_only(HOURLY, NIGHTLY, UNIQUE):
        yield


def cells(client, entry):
    html = client.get(f"{ROOT}periodic/").text
    rows = dict(re.findall(r'<tr data-key="([^"]*)"[^>]*>(.*?)</tr>', html, re.DOTALL))
    row = {unescape(name): found for name, found in rows.items()}[entry.name]
    return [" ".join(unescape(strip_tags(cell)).split()) for cell in re.split(r"</t[hd]>", row)]


def act(client, verb, entry):
    return done(client, url(verb, alias="default", periodic=entry.name))


def test_each_has_its_schedule_zone_policy_and_queue(viewer):
    name, schedule, zone, _next, _last, missed, queue, *_rest = cells(viewer, NIGHTLY)

    assert name == 'tests.queues.admin.scene.sweep ["<b>month</b>"]'
    assert (schedule, zone, missed, queue) == ("0 3 * * *", "Europe/Berlin", "skip them", "default")
    assert cells(viewer, HOURLY)[1:3] == ["every 1 h", "UTC"]
    assert [cells(viewer, entry)[5] for entry in (HOURLY, UNIQUE)] == ["run once", "run all of them"]


def test_the_next_and_the_last_run_are_shown(viewer, redis):
    assert cells(viewer, HOURLY)[3:5] == [
        "not known: no worker has started since it was declared",
        "\N{EN DASH}",
    ]
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    periodic = keys.BackendKeys("default").periodic
    redis.zadd(periodic, {HOURLY.name: to_us(hour)})

    _name, _schedule, _zone, following, last, *_rest = cells(viewer, HOURLY)

    is_over = datetime.now(UTC) >= hour + timedelta(hours=1)
    assert is_over or re.search(r" in \d+ (min|s)", following) or "in 1 h" in following
    assert last.endswith("ago")
    redis.zadd(periodic, {HOURLY.name: to_us(datetime(2024, 1, 1, tzinfo=UTC))})
    assert cells(viewer, HOURLY)[3].startswith("Overdue, since 2024-01-01 01:00:00")


def test_what_cannot_be_pushed_says_why_and_an_unfinished_unique_one_is_not_run_twice(operator, settings):
    act(operator, "run", UNIQUE)
    [task_id] = places()["ready"]

    assert f"{task_id} is unfinished" in act(operator, "run", UNIQUE)[0]
    settings.TASKS = {"default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": ["mail"]}}
    assert "cannot be run:" in act(operator, "run", HOURLY)[0]

    assert places() == {"ready": [task_id]}
    assert len(logged()) == 1


def test_running_one_now_is_asked_done_and_logged(operator):
    Ticks().declare([NIGHTLY.name])
    before = Ticks().last([NIGHTLY.name])

    operator.get(url("run", alias="default", periodic=NIGHTLY.name))
    assert places() == {}
    [said] = act(operator, "run", NIGHTLY)

    [task_id] = places()["ready"]
    info = TaskQueue().get(task_id)
    assert (info.name, info.args) == ("tests.queues.admin.scene.sweep", ["<b>month</b>"])
    assert task_id in said
    assert logged() == [said]
    assert LogEntry.objects.get().object_id == "default/default"
    assert Ticks().last([NIGHTLY.name]) == before  # the scheduled run stays


def test_one_can_be_paused_and_resumed(operator):
    Ticks().declare([HOURLY.name])

    paused = act(operator, "pause-periodic", HOURLY)
    assert cells(operator, HOURLY)[3] == "Paused"
    assert "Resume" in cells(operator, HOURLY)[8]
    assert "already" in act(operator, "pause-periodic", HOURLY)[0]
    resumed = act(operator, "resume-periodic", HOURLY)
    assert "in " in cells(operator, HOURLY)[3]
    assert "not paused" in act(operator, "resume-periodic", HOURLY)[0]

    assert logged() == [*paused, *resumed]
    assert operator.get(url("run", alias="default", periodic="gone")).status_code == 404


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
