"""One stored entry that cannot be read never fails a page or the command of the queues: the others are shown."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command

from components.services.queues import keys
from components.services.queues.facts import to_us
from tests.queues.admin import scene
from tests.queues.admin.periodic import HOURLY, declare_only
from tests.support.queues import server_time

ROOT = "/admin/components/queue/"
ALIAS, QUEUE = "default", "mail"
DEEP = b"[" * 50_000 + b"]" * 50_000
FAIRLY_DEEP = b"[" * 700 + b"]" * 700  # Python reads it, and may not write it again
HEAD = b"1 0 0 0 0 0 - mail\n"
RECORDS = [
    b"",
    b"garbage",
    b"\xff\xfe\n{}",
    b"99 written by a later release",
    HEAD + b"not json",
    HEAD + b"[]",
    HEAD + b'{"task":5,"args":[],"kwargs":{}}',
    HEAD + b'{"task":"a.b","args":' + DEEP + b',"kwargs":{}}',
    HEAD + b'{"task":"a.b","args":' + FAIRLY_DEEP + b',"kwargs":{}}',
    b"1 99999999999999999999 0 0 0 0 - mail\n" + b'{"task":"a.b","args":[],"kwargs":{}}',
    b"1 -62135596800000000 -62135596800000000 0 0 0 - mail\n" + b'{"task":"a.b","args":[],"kwargs":{}}',
]

pytestmark = pytest.mark.usefixtures("redis")


def text_of(client, page, **query):
    response = client.get(f"{ROOT}{page}", {"alias": ALIAS, "queue": QUEUE, **query})
    assert response.status_code == 200
    return response.text


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: repr(record[:40]))
@pytest.mark.parametrize("state", ["ready", "delayed", "running", "dead", "successful"])
def test_a_record(viewer, redis, state, record):
    ids = scene.one_of_each(QUEUE)
    place = getattr(keys.QueueKeys(ALIAS, QUEUE), state)
    redis.zadd(place, {"odd": to_us(server_time()) // 1000})
    redis.hset(keys.BackendKeys(ALIAS).tasks, "odd", record)
    redis.set(keys.BackendKeys(ALIAS).result("odd"), record + b"\n\n0\n\nnull")

    for query in ({}, {"q": "market"}, {"q": "odd"}, {"select": "page"}):
        page = text_of(viewer, "tasks/", state=state, **query)
        assert ("odd" in page) or query.get("q") == "market"
        assert ids[state] in page or query.get("q") == "odd"
    assert viewer.get(f"{ROOT}task/", {"alias": ALIAS, "id": "odd"}).status_code in (200, 404)
    assert "mail" in text_of(viewer, "")


@pytest.mark.parametrize(
    "stored", [b"", b"garbage", b"[]", b"{}", DEEP, b"\xff", b'{"v":1,"errors":[[1,2]]}']
)
@pytest.mark.parametrize("part", ["errors", "progress", "runs"])
def test_a_part_of_a_task(viewer, redis, part, stored):
    ids = scene.one_of_each(QUEUE)
    for state in ("running", "dead"):
        redis.hset(getattr(keys.BackendKeys(ALIAS), part), ids[state], stored)

        assert ids[state] in text_of(viewer, "tasks/", state=state)
        assert viewer.get(f"{ROOT}task/", {"alias": ALIAS, "id": ids[state]}).status_code in (200, 404)


@pytest.mark.parametrize("about", [b"", b"garbage", b"[]", b"{}", DEEP, b"\xff"])
def test_a_worker(viewer, redis, about):
    good, odd = scene.worker(QUEUE), scene.worker(QUEUE)
    redis.hset(keys.BackendKeys(ALIAS).worker(odd.id), "about", about)

    assert good.id in text_of(viewer, "")
    shown = io.StringIO()
    call_command("queues", "--json", stdout=shown)
    assert good.id in [worker["id"] for worker in json.loads(shown.getvalue())["backends"][ALIAS]["workers"]]


@pytest.mark.parametrize("score", ["inf", "-inf", "1e300"])
def test_a_score(viewer, redis, score):
    ids = scene.one_of_each(QUEUE)
    for state in ("ready", "delayed", "running", "dead", "successful"):
        redis.zadd(getattr(keys.QueueKeys(ALIAS, QUEUE), state), {"odd": score})
        assert ids[state] in text_of(viewer, "tasks/", state=state)
    redis.zadd(keys.BackendKeys(ALIAS).workers, {scene.worker(QUEUE).id: score})
    redis.sadd(keys.BackendKeys(ALIAS).names, b"\xff\xfe")

    assert "mail" in text_of(viewer, "")
    shown = io.StringIO()
    call_command("queues", stdout=shown)
    assert "mail" in shown.getvalue()


@pytest.mark.parametrize("score", ["inf", "-inf", "1e300", "-1e300"])
def test_a_tick(viewer, redis, score):
    with declare_only(HOURLY):
        redis.zadd(keys.BackendKeys(ALIAS).periodic, {HOURLY.name: score})

        assert "sweep" in text_of(viewer, "periodic/")
        call_command("queues", "--json", stdout=io.StringIO())
