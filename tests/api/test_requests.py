"""Requests: what all addresses share, and invalid ones, of which nothing is stored."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings
from redis import Redis

from components.api.problems import KINDS
from components.services.mailboxes import Mailbox
from tests.fixtures.api import Asker, problem

pytestmark = pytest.mark.usefixtures("redis")

TOKEN = "a" * 32


@pytest.mark.parametrize(
    "raw",
    [
        b'{"text": "\xff\xfe"}',
        b"\xff\xfe{\x00}\x00",
        b'{"text": "\xed\xa0\x80"}',
        b'{"text": "a", "data": NaN}',
        b'{"text": "a", "data": -Infinity}',
        b'{"text": "a", "data": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'{"text": "a", "data": ' + b"9" * 5_000 + b"}",
        b"null",
        b"5",
    ],
)
def test_a_body_that_is_not_a_json_object_is_malformed(
    joe: Asker, jill: Asker, redis: Redis, raw: bytes
) -> None:
    problem(joe("POST", f"mailboxes/{jill.id}", raw=raw), 400, "malformed")
    assert redis.dbsize() == 0


def test_a_body_has_its_largest_size(joe: Asker, jill: Asker) -> None:
    for size, status in ((65_536, 422), (65_537, 413)):
        raw = b'{"text": "' + b"a" * (size - 12) + b'"}'
        assert joe("POST", f"mailboxes/{jill.id}", raw=raw).status_code == status


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


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_body_of_another_media_type_is_refused(joe: Asker, jill: Asker, kind: str) -> None:
    # The form of another site can send these without asking the browser first.
    answer = joe("POST", f"mailboxes/{jill.id}", raw=b'{"text": "a"}', Content_Type=kind)

    problem(answer, 415, "unsupported-media-type")
    assert Mailbox(jill.id).depth() == 0


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
    with override_settings(COMPONENTS={"API_AUTHENTICATION": "tests.api.test_requests.by_token"}):
        answer = client.post(
            f"/api/mailboxes/{joe.pk}",
            {"text": "a"},
            content_type="application/json",
            headers={"Authorization": "Bearer joe"},
        )
    assert answer.status_code == 201


# A hook for bearer tokens


def by_token(request):
    from django.contrib.auth.models import User

    name = request.headers["Authorization"].removeprefix("Bearer ")
    return User.objects.filter(username=name).first()


async def by_token_later(request):
    from django.contrib.auth.models import User

    name = request.headers["Authorization"].removeprefix("Bearer ")
    return await User.objects.filter(username=name).afirst()


@pytest.mark.parametrize("hook", ["by_token", "by_token_later"])
def test_a_project_can_accept_bearer_tokens(nobody: Asker, joe: Asker, hook: str) -> None:
    with override_settings(COMPONENTS={"API_AUTHENTICATION": f"tests.api.test_requests.{hook}"}):
        assert nobody("GET", "people?name=joe", Authorization="Bearer joe").status_code == 200

        for token in ("jack", ""):
            answer = nobody("GET", "people?name=joe", Authorization=f"Bearer {token}")
            problem(answer, 401, "not-authenticated")
            assert answer["WWW-Authenticate"] == "Bearer"
        problem(nobody("GET", "people?name=joe"), 401, "not-authenticated")
        assert joe("GET", "people?name=joe").status_code == 200
        # A session does not make up for an invalid token.
        problem(joe("GET", "people?name=joe", Authorization="Bearer jack"), 401, "not-authenticated")


def test_without_a_hook_bearer_tokens_are_ignored(nobody: Asker, joe: Asker) -> None:
    problem(nobody("GET", "people?name=joe", Authorization="Bearer joe"), 401, "not-authenticated")
    assert joe("GET", "people?name=joe", Authorization="Bearer x").status_code == 200


# People, problems and addresses


def test_people_are_found_by_their_exact_names(joe: Asker, jill: Asker) -> None:
    client = Client()
    client.force_login(User.objects.get(pk=joe.id))
    path = "people?name=jill&name=Jill&name=nobody"

    # The server of runserver makes up the type of a body that is not there.
    for answer in (
        joe("GET", path),
        client.get(f"/api/{path}", CONTENT_TYPE="text/plain", CONTENT_LENGTH=""),
    ):
        assert answer.json() == {"people": [{"id": jill.id, "name": "jill"}]}
        assert (answer["Cache-Control"], {"Authorization", "Cookie"} <= set(answer["Vary"].split(", "))) == (
            "no-store",
            True,
        )
    assert joe("HEAD", path).status_code == 200
    for name in ("%00", "%ff%fe", "%ed%a0%80", "joe%00"):  # no text, and nobody's name
        assert joe("GET", f"people?name={name}").json() == {"people": []}


def test_an_unknown_address_is_answered_by_a_problem_and_not_a_page(joe: Asker) -> None:
    for path in ("nowhere", "people/", "chats/", "chats/a/b/c/d", "chats//messages", "%2e%2e"):
        for method in ("GET", "POST", "DELETE"):
            problem(joe(method, path), 404, "not-found")


def test_each_type_of_problem_explains_itself(client: Client) -> None:
    for name, kind in KINDS.items():
        answer = client.get(f"/api/problems/{name}")
        assert answer.status_code == 200
        assert answer.text.startswith(f"{kind.status} {kind.title}. {kind.explanation}")
    assert client.get("/api/problems/made-up").status_code == 404


def test_a_problem_is_in_the_language_of_the_client_but_not_its_type(client: Client) -> None:
    answer = client.get("/api/people", headers={"Accept-Language": "de"})

    told = problem(answer, 401, "not-authenticated")
    assert told["title"] == "Zuerst anmelden"
    explained = client.get(told["type"], headers={"Accept-Language": "de"})
    assert explained.text.startswith("401 Zuerst anmelden. ")
