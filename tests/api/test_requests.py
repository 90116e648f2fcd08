"""Invalid requests: each answer says what is wrong, and nothing is stored."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings
from redis import Redis

from components.services.mailboxes import Mailbox
from components.testing import redis_at
from tests.fixtures.api import Asker, problem

pytestmark = pytest.mark.usefixtures("redis")

TOKEN = "a" * 32


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"hello",
        b'{"text": "\xff\xfe"}',
        b"\xff\xfe{\x00}\x00",
        b'{"text": "\xed\xa0\x80"}',
        b'{"text": "a", "data": NaN}',
        b'{"text": "a", "data": -Infinity}',
        b'{"text": "a", "data": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'{"text": "a", "data": ' + b"9" * 5_000 + b"}",
        b"[]",
        b"null",
        b'"text"',
        b"5",
    ],
)
def test_a_body_that_is_not_a_json_object_is_malformed(
    joe: Asker, jill: Asker, redis: Redis, raw: bytes
) -> None:
    problem(joe("POST", f"mailboxes/{jill.id}", raw=raw), 400, "malformed")
    assert redis.dbsize() == 0


@pytest.mark.parametrize("size", [65_537, 1_000_000, 3_000_000])
def test_a_large_body_is_refused(joe: Asker, jill: Asker, redis: Redis, size: int) -> None:
    raw = b'{"text": "' + b"a" * (size - 12) + b'"}'

    problem(joe("POST", f"mailboxes/{jill.id}", raw=raw), 413, "too-large")
    assert redis.dbsize() == 0


def test_a_large_body_without_a_length_is_read_no_further_than_the_limit(joe: Asker, jill: Asker) -> None:
    raw = b'{"text": "' + b"a" * 1_000_000 + b'"}'

    answer = joe("POST", f"mailboxes/{jill.id}", raw=raw, Content_Length="")
    problem(answer, 413, "too-large")


def test_a_false_length_does_not_lift_the_limit(joe: Asker, jill: Asker, redis: Redis) -> None:
    raw = b'{"text": "' + b"a" * 100_000 + b'"}'

    for length in ("5", "9" * 30, "-1", "x"):
        answer = joe("POST", f"mailboxes/{jill.id}", raw=raw, Content_Length=length)
        assert answer.status_code in (400, 413)
    assert redis.dbsize() == 0


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"],
)
def test_a_body_of_another_media_type_is_refused(joe: Asker, jill: Asker, kind: str) -> None:
    # The form of another site can send these without asking the browser first.
    answer = joe("POST", f"mailboxes/{jill.id}", raw=b'{"text": "a"}', Content_Type=kind)

    problem(answer, 415, "unsupported-media-type")
    assert Mailbox(jill.id).depth() == 0


def test_a_type_without_a_body_is_made_up_by_the_server_of_runserver(joe: Asker) -> None:
    client = Client()
    client.force_login(User.objects.get(pk=joe.id))

    answer = client.get("/api/people?name=joe", CONTENT_TYPE="text/plain", CONTENT_LENGTH="")

    assert answer.status_code == 200


def test_the_media_type_may_have_a_charset(joe: Asker, jill: Asker) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        answer = joe("POST", f"mailboxes/{jill.id}", raw=b'{"text": "a"}', Content_Type=kind)
        assert answer.status_code == 201


# CSRF


@pytest.mark.django_db
@pytest.mark.parametrize("uses_sessions", [False, True])
def test_a_session_needs_the_csrf_token_to_change_something(uses_sessions: bool) -> None:
    joe = User.objects.create_user("joe")
    client = Client(enforce_csrf_checks=True)
    client.force_login(joe)
    body = {"data": {"text": "a"}, "content_type": "application/json"}
    with override_settings(CSRF_USE_SESSIONS=uses_sessions):
        for token in ({}, {"X-CSRFToken": "b" * 32}):
            answer = client.post(f"/api/mailboxes/{joe.pk}", headers=token, **body)
            problem(answer, 403, "csrf")
        assert client.get("/api/mailbox").status_code == 200
        assert Mailbox(str(joe.pk)).depth() == 0

        if uses_sessions:
            session = client.session
            session["_csrftoken"] = TOKEN
            session.save()
        else:
            client.cookies["csrftoken"] = TOKEN
        answer = client.post(f"/api/mailboxes/{joe.pk}", headers={"X-CSRFToken": TOKEN}, **body)
        assert answer.status_code == 201
        answer = client.post(
            f"/api/mailboxes/{joe.pk}",
            headers={"X-CSRFToken": TOKEN, "Origin": "https://elsewhere.example"},
            **body,
        )
        problem(answer, 403, "csrf")


@pytest.mark.django_db
def test_a_bearer_token_needs_no_csrf_token() -> None:
    joe = User.objects.create_user("joe")
    client = Client(enforce_csrf_checks=True)
    with override_settings(COMPONENTS={"API_AUTHENTICATION": "tests.api.test_people.by_token"}):
        answer = client.post(
            f"/api/mailboxes/{joe.pk}",
            {"text": "a"},
            content_type="application/json",
            headers={"Authorization": "Bearer joe"},
        )
    assert answer.status_code == 201


# Without Redis


def test_without_redis_the_answer_says_when_to_come_back(joe: Asker, jill: Asker) -> None:
    with redis_at("redis://127.0.0.1:1"):
        for method, path, content in (
            ("GET", "mailbox", None),
            ("POST", "mailbox/pull", {"timeout": 5}),
            ("POST", f"mailboxes/{jill.id}", {"text": "a"}),
        ):
            answer = joe(method, path, content)
            told = problem(answer, 503, "redis-unavailable")
            assert answer["Retry-After"] == "10"
            assert "127.0.0.1" not in json.dumps(told)
