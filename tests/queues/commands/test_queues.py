"""`manage.py queues`, in this process, and as one where its end is what counts."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command

from components.services.queues import Consumer, TaskQueue, keys
from tests.queues.admin import scene
from tests.queues.admin.periodic import HOURLY, NIGHTLY, declare_only

BACKEND = "components.tasks.RedisBackend"


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


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


def test_sizes_ages_and_what_is_paused(redis):
    scene.one_of_each("mail")
    task_id = scene.ready("mail", count=2)[0]
    seconds, _microseconds = redis.time()
    redis.zadd(keys.QueueKeys("default", "mail").ready, {task_id: (seconds - 90) * 1000})
    scene.delayed("news")
    TaskQueue().pause("news")

    mail, news = document()["backends"]["default"]["queues"]

    sizes = {state: mail[state] for state in ("ready", "delayed", "running", "dead", "successful")}
    assert sizes == {"ready": 3, "delayed": 1, "running": 1, "dead": 1, "successful": 1}
    assert 89 <= mail["oldest_age"] < 200
    assert (mail["name"], mail["paused"], news["name"], news["paused"]) == ("mail", False, "news", True)
    assert news["oldest_age"] is None
    due = datetime.fromisoformat(news["next_due_at"])
    assert due.utcoffset() == timedelta()


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
            *("oldest_age", "next_due_at", "paused", "cut_off"),
        },
        "workers": {
            *("id", "kind", "host", "pid", "queues", "concurrency", "running"),
            *("started_at", "seen_at", "alive", "quiet", "order"),
        },
        "periodic": {"name", "task", "schedule", "queue", "missed", "last_at", "next_at", "paused"},
    }
    found = {worker["id"]: worker for worker in document()["backends"]["default"]["workers"]}

    def said(consumer: Consumer, *names: str) -> list[Any]:
        return [found[consumer.id][name] for name in names]

    assert said(lost, "alive", "quiet", "order", "queues") == [False, False, None, ["mail"]]
    assert said(quiet, "alive", "quiet", "order", "concurrency") == [True, True, "quiet", 8]
    assert said(poller, "alive", "kind", "order") == [True, "poller", "stop"]
    text = {line[0]: line for line in lines(show()) if line}
    assert "lost" in text[lost.id]
    assert "quiet" in text[quiet.id]
    assert text[poller.id][4:7] == ["asked", "to", "stop"]


def test_periodic_tasks_with_their_ticks(redis):
    redis.zadd(keys.BackendKeys("default").periodic, {HOURLY.name: 1_735_689_600_000_000})  # 2025-01-01 00:00

    nightly, hourly = document()["backends"]["default"]["periodic"]

    assert hourly == {
        "name": "tests.queues.admin.periodic.sweep every 1 hour",
        "task": "tests.queues.admin.periodic.sweep",
        "schedule": "every 1 hour",
        "queue": "default",
        "missed": "once",
        "last_at": "2025-01-01T00:00:00+00:00",
        "next_at": "2025-01-01T01:00:00+00:00",
        "paused": False,
    }
    assert (nightly["schedule"], nightly["last_at"], nightly["next_at"]) == (
        "0 3 * * * (Europe/Berlin)",
        None,
        None,
    )


def test_the_tables_say_the_same_in_columns(redis):
    scene.one_of_each("mail")
    scene.ready("a long name of a queue", count=1234)

    text = show()

    first, second, third = text.splitlines()[1:4]
    assert text.startswith("default: queues\n")
    assert (
        " ".join(first.split()) == "queue ready oldest delayed next due running dead successful cut off state"
    )
    assert "1234" in second
    assert third.split()[0] == "mail"
    assert third.split()[-1] == "active"
    assert first.index("ready") + len("ready") == second.index("1234") + 4
    assert "tests.queues.admin.periodic.sweep  0 3 * * * (Europe/Berlin)" in text


def test_an_empty_list_says_that_there_are_none(redis):
    with declare_only():
        assert (
            " ".join(show().split())
            == "default: queues none default: workers none default: periodic tasks none"
        )
        assert document()["backends"] == {"default": {"queues": [], "workers": [], "periodic": []}}
        redis.sadd(keys.BackendKeys("default").names, "two\nlines")
        assert r"two\nlines" in show()
        assert document()["backends"]["default"]["queues"][0]["name"] == "two\nlines"


def test_each_alias_on_redis_is_shown_or_the_one_that_is_named(redis, settings):
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "QUEUES": []},
        "bulk": {"BACKEND": BACKEND, "QUEUES": []},
    }
    TaskQueue("bulk").push("market.tasks.send", queue="imports")

    assert set(document()["backends"]) == {"default", "bulk"}
    assert [queue["name"] for queue in document("--backend", "bulk")["backends"]["bulk"]["queues"]] == [
        "imports"
    ]
    assert "default: queues" not in show("--backend", "bulk")
