"""One stored entry that cannot be read never fails a page or the command of the queues: the others are shown."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from components.services.queues import keys
from components.services.queues.facts import to_us
from tests.queues.admin import scene
from tests.queues.admin.periodic import HOURLY, declare_only
from tests.support.queues import STATES, server_time

ROOT = "/admin/components/queue/"
ALIAS, QUEUE = "default", "mail"
KEYS = keys.QueueKeys(ALIAS, QUEUE)
DEEP = b"[" * 50_000 + b"]" * 50_000
FAIRLY_DEEP = b"[" * 700 + b"]" * 700  # Python reads it, and may not write it again
HEAD, BODY = b"1 0 0 0 0 0 - mail\n", b'{"task":"a.b","args":[],"kwargs":{}}'

pytestmark = pytest.mark.usefixtures("redis")


def text_of(client, page, **query):
    response = client.get(f"{ROOT}{page}", {"alias": ALIAS, "queue": QUEUE, **query})
    assert response.status_code == 200
    return response.text


@pytest.mark.parametrize(
    "record",
    [
        b"garbage",
        b"99 written by a later release",
        HEAD + b'{"task":5,"args":[],"kwargs":{}}',
        HEAD + BODY.replace(b"[]", DEEP),
        HEAD + BODY.replace(b"[]", FAIRLY_DEEP),
        HEAD.replace(b"1 0", b"1 99999999999999999999") + BODY,
        HEAD.replace(b"1 0 0", b"1 -62135596800000000 -62135596800000000") + BODY,
    ],
    ids=lambda record: repr(record[:30]),
)
def test_a_record(viewer, redis, record):
    ids = scene.one_of_each(QUEUE)
    redis.hset(KEYS.tasks, "odd", record)
    redis.set(KEYS.result("odd"), record + b"\n\n0\n\nnull")
    for state in STATES:
        redis.zadd(getattr(KEYS, state), {"odd": to_us(server_time()) // 1000})

        for query in ({}, {"q": "odd"}):
            page = text_of(viewer, "tasks/", state=state, **query)
            assert "odd" in page
            assert (ids[state] in page) == (not query)
        assert ids[state] in text_of(viewer, "tasks/", state=state, q="market")
    assert viewer.get(f"{ROOT}task/", {"alias": ALIAS, "id": "odd"}).status_code in (200, 404)
    assert "mail" in text_of(viewer, "")


@pytest.mark.parametrize("score", ["inf", "-inf", "1e300", "-1e300"])
def test_a_score_and_a_tick(viewer, redis, score):
    ids = scene.one_of_each(QUEUE)
    for state in STATES:
        redis.zadd(getattr(KEYS, state), {"odd": score})
        assert ids[state] in text_of(viewer, "tasks/", state=state)
    redis.zadd(KEYS.workers, {scene.worker(QUEUE).id: score})
    redis.sadd(KEYS.names, b"\xff\xfe")
    redis.zadd(KEYS.periodic, {HOURLY.name: score})

    assert "mail" in text_of(viewer, "")
    with declare_only(HOURLY):
        assert "sweep" in text_of(viewer, "periodic/")
        call_command("queues", "--json", stdout=io.StringIO())
