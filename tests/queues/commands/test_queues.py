"""`manage.py queues`, in this process, and as one where its end is what counts."""

import io
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command

from components.services.queues import TaskQueue, keys
from tests.queues.admin import scene
from tests.queues.admin.scene import HOURLY, NIGHTLY, declare_only


@pytest.fixture(autouse=True)
def two_periodic_tasks():
    with declare_only(HOURLY, NIGHTLY):
        yield


def show(*arguments: str) -> str:
    out = io.StringIO()
    call_command("queues", *arguments, stdout=out)
    return out.getvalue()


def document(*arguments: str) -> Any:
    return json.loads(show("--json", *arguments))


def test_workers_and_what_they_were_asked(redis):
    scene.ready()
    lost, quiet, poller = scene.worker("mail"), scene.worker("*", concurrency=8), scene.worker(kind="poller")
    TaskQueue().tell(quiet.id, "quiet")
    quiet.is_quiet = True
    quiet.renew(["*"])
    TaskQueue().tell(poller.id, "stop")
    redis.zadd(keys.BackendKeys("default").workers, {lost.id: 1_700_000_000_000})

    whole = document()
    assert (set(whole), whole["format"], set(whole["backends"])) == ({"format", "backends"}, 1, {"default"})
    assert {part: set(found[0]) for part, found in whole["backends"]["default"].items()} == {
        "queues": {
            *("name", "ready", "delayed", "running", "dead", "successful"),
            *("oldest_age", "next_due_at", "paused", "cut_off", "retrying", "trimmed"),
        },
        "workers": {
            *("id", "kind", "host", "pid", "queues", "concurrency", "running"),
            *("started_at", "seen_at", "alive", "quiet", "order"),
        },
        "periodic": {"name", "task", "schedule", "queue", "missed", "last_at", "next_at", "paused"},
    }
    found = {worker["id"]: worker for worker in whole["backends"]["default"]["workers"]}
    said = {each.id: [found[each.id][name] for name in ("alive", "quiet", "order")] for each in (lost, quiet)}
    assert said == {lost.id: [False, False, None], quiet.id: [True, True, "quiet"]}
    assert (found[lost.id]["queues"], found[quiet.id]["concurrency"]) == (["mail"], 8)
    assert (found[poller.id]["kind"], found[poller.id]["order"]) == ("poller", "stop")
    text = {line.split()[0]: line for line in show().splitlines() if line}
    assert "lost" in text[lost.id]
    assert "quiet" in text[quiet.id]
    assert "asked to stop" in text[poller.id]


def test_an_empty_list_says_that_there_are_none(redis):
    with declare_only():
        assert show().split().count("none") == 3
        assert document()["backends"] == {"default": {"queues": [], "workers": [], "periodic": []}}
        redis.sadd(keys.BackendKeys("default").names, "two\nlines")
        assert r"two\nlines" in show()
        assert document()["backends"]["default"]["queues"][0]["name"] == "two\nlines"


def test_each_alias_on_redis_is_shown_or_the_one_that_is_named(redis, settings):
    backend = {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}
    settings.TASKS = {"default": backend, "bulk": backend}
    TaskQueue("bulk").push("market.tasks.send", queue="imports")

    assert set(document()["backends"]) == {"default", "bulk"}
    [bulk] = document("--backend", "bulk")["backends"]["bulk"]["queues"]
    assert bulk["name"] == "imports"
    assert "default: queues" not in show("--backend", "bulk")


def test_sizes_ages_what_is_paused_and_periodic_tasks(redis):
    scene.one_of_each("mail")
    task_id = scene.ready("mail", count=2)[0]
    seconds, _microseconds = redis.time()
    redis.zadd(keys.QueueKeys("default", "mail").ready, {task_id: (seconds - 90) * 1000})
    scene.delayed("news")
    TaskQueue().pause("news")
    redis.zadd(keys.BackendKeys("default").periodic, {HOURLY.name: 1_735_689_600_000_000})  # 2025-01-01 00:00

    shown = document()["backends"]["default"]
    mail, news = shown["queues"]
    nightly, hourly = shown["periodic"]

    sizes = {state: mail[state] for state in ("ready", "delayed", "running", "dead", "successful")}
    assert sizes == {"ready": 3, "delayed": 1, "running": 1, "dead": 1, "successful": 1}
    assert 89 <= mail["oldest_age"] < 200
    assert (mail["name"], mail["paused"], news["name"], news["paused"]) == ("mail", False, "news", True)
    assert news["oldest_age"] is None
    assert datetime.fromisoformat(news["next_due_at"]).utcoffset() == timedelta()
    assert hourly == {
        "name": "tests.queues.admin.scene.sweep every 1 hour",
        "task": "tests.queues.admin.scene.sweep",
        "schedule": "every 1 hour",
        "queue": "default",
        "missed": "once",
        "last_at": "2025-01-01T00:00:00+00:00",
        "next_at": "2025-01-01T01:00:00+00:00",
        "paused": False,
    }
    assert (nightly["schedule"], nightly["last_at"]) == ("0 3 * * * (Europe/Berlin)", None)
    head, first, *_others = show().splitlines()[1:]
    assert head.split()[:3] == ["queue", "ready", "oldest"]
    assert (first.split()[:2], first.split()[-1]) == (["mail", "3"], "active")
    assert head.index("ready") + len("ready") == first.index("3") + 1
