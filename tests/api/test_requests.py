"""Requests: what all addresses share, and invalid ones, of which nothing is stored."""

import json
from typing import Any
from unittest.mock import Mock

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.core.handlers.base import BaseHandler
from django.db import connections
from django.test import AsyncClient, Client
from django.test.utils import override_settings
from redis import Redis

from components.api.endpoints import endpoint, nowhere
from components.api.problems import KINDS
from components.kit.decoding import UNREADABLE
from components.services.chat import Chat
from components.services.chat.keys import ChatKeys
from components.services.mailboxes import Mailbox
from tests.fixtures.api import Asker, problem
from tests.support.chats import FREE
from tests.support.poison import BODIES, put_into_chat

pytestmark = pytest.mark.usefixtures("redis")

TOKEN = "a" * 32
suspicious = Mock(side_effect=SuspiciousOperation("a secret"))


def test_a_body_has_a_largest_size_whatever_length_it_claims(joe: Asker, jill: Asker, redis: Redis) -> None:
    for size, status in ((65_536, 422), (65_537, 413)):
        raw = b'{"text": "' + b"a" * (size - 12) + b'"}'
        assert joe("POST", f"mailboxes/{jill.id}", raw=raw).status_code == status
    for length in ("", "5", "9" * 30, "-1", "x"):
        answer = joe("POST", f"mailboxes/{jill.id}", raw=raw, Content_Length=length)
        assert answer.status_code in ((413,) if not length else (400, 413))
    assert redis.dbsize() == 0


def test_the_media_type_may_have_a_charset(joe: Asker, jill: Asker) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        answer = joe("POST", f"mailboxes/{jill.id}", raw=b'{"text": "a"}', Content_Type=kind)
        assert answer.status_code == 201


@pytest.mark.django_db
@pytest.mark.parametrize("uses_sessions", [False, True])
def test_a_session_needs_the_csrf_token_to_change_something(uses_sessions: bool) -> None:
    joe = User.objects.create_user("joe")
    client = Client(enforce_csrf_checks=True)
    client.force_login(joe)

    def push(**headers: str) -> Any:
        path = f"/api/mailboxes/{joe.pk}"
        return client.post(path, {"text": "a"}, content_type="application/json", headers=headers)

    with override_settings(CSRF_USE_SESSIONS=uses_sessions):
        for token in ({}, {"X-CSRFToken": "b" * 32}):
            problem(push(**token), 403, "csrf")
        assert client.get("/api/mailbox").status_code == 200
        assert Mailbox(str(joe.pk)).depth() == 0

        if uses_sessions:
            session = client.session
            session["_csrftoken"] = TOKEN
            session.save()
        else:
            client.cookies["csrftoken"] = TOKEN
        assert push(**{"X-CSRFToken": TOKEN}).status_code == 201
        problem(push(**{"X-CSRFToken": TOKEN, "Origin": "https://elsewhere.example"}), 403, "csrf")


# A hook for bearer tokens


def by_token(request):
    name = request.headers["Authorization"].removeprefix("Bearer ")
    return User.objects.filter(username=name).first()


async def by_token_later(request):
    return await sync_to_async(by_token)(request)


@pytest.mark.parametrize("hook", ["by_token", "by_token_later"])
def test_a_project_can_accept_bearer_tokens(nobody: Asker, joe: Asker, hook: str) -> None:
    with override_settings(COMPONENTS={"API_AUTHENTICATION": f"tests.api.test_requests.{hook}"}):
        assert nobody("GET", "people?name=joe", Authorization="Bearer joe").status_code == 200
        nobody.client = AsyncClient(enforce_csrf_checks=True)
        sent = nobody("POST", f"mailboxes/{joe.id}", {"text": "a"}, Authorization="Bearer joe")
        assert sent.status_code == 201

        for token in ("jack", ""):
            answer = nobody("GET", "people?name=joe", Authorization=f"Bearer {token}")
            problem(answer, 401, "not-authenticated")
            assert answer["WWW-Authenticate"] == "Bearer"
        problem(nobody("GET", "people?name=joe"), 401, "not-authenticated")
        assert joe("GET", "people?name=joe").status_code == 200
        # A session does not make up for an invalid token.
        problem(joe("GET", "people?name=joe", Authorization="Bearer jack"), 401, "not-authenticated")
    # Without the setting, tokens are ignored.
    assert joe("GET", "people?name=joe", Authorization="Bearer jack").status_code == 200
    problem(nobody("GET", "people?name=joe", Authorization="Bearer joe"), 401, "not-authenticated")


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
        assert answer["Cache-Control"] == "no-store"
        assert {"Authorization", "Cookie"} <= set(answer["Vary"].split(", "))
    assert joe("HEAD", path).status_code == 200
    for name in ("%00", "%ff%fe", "%ed%a0%80", "joe%00"):  # no text, and nobody's name
        assert joe("GET", f"people?name={name}").json() == {"people": []}


def test_an_unknown_address_is_answered_by_a_problem_and_not_a_page(joe: Asker) -> None:
    for path in ("nowhere", "people/", "chats/", "chats/a/b/c/d", "chats//messages", "%2e%2e"):
        for method in ("GET", "POST", "DELETE"):
            problem(joe(method, path), 404, "not-found")


@pytest.mark.parametrize("alias", ["default", "other"])
def test_no_address_is_in_a_transaction_of_atomic_requests(
    alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        connections.settings, alias, {**connections.settings["default"], "ATOMIC_REQUESTS": True}
    )
    view = endpoint(get=nowhere)
    assert BaseHandler().make_view_atomic(view) is view


def test_what_django_refuses_as_suspicious_is_a_problem_and_not_a_page(joe: Asker) -> None:
    for path in ("people", "sync", "contacts", "chats"):
        answer = joe("GET", f"{path}?{'a=1&' * 1_001}")
        assert "at most 1,000 fields" in problem(answer, 400, "malformed")["detail"]
    with override_settings(COMPONENTS={"API_AUTHENTICATION": "tests.api.test_requests.suspicious"}):
        answer = joe("GET", "people", Authorization="Bearer joe")
        assert "secret" not in problem(answer, 400, "malformed")["detail"]


def test_each_type_of_problem_explains_itself_in_the_language_of_the_client(client: Client) -> None:
    for name, kind in KINDS.items():
        answer = client.get(f"/api/problems/{name}")
        assert answer.status_code == 200
        assert answer.text.startswith(f"{kind.status} {kind.title}. {kind.explanation}")
    assert client.get("/api/problems/made-up").status_code == 404
    german = {"Accept-Language": "de"}
    told = problem(client.get("/api/people", headers=german), 401, "not-authenticated")
    assert told["title"] == "Zuerst anmelden"
    assert client.get(told["type"], headers=german).text.startswith("401 Zuerst anmelden. ")


def no_number(name: str) -> None:
    raise AssertionError(f"{name} is no JSON: browsers cannot read the answer")


def strictly(answer: Any) -> Any:
    assert answer.status_code == 200, answer.content
    return json.loads(answer.content, parse_constant=no_number)


@pytest.mark.parametrize("name", ["nested endlessly", "no number", "endless", "half a character", "no UTF-8"])
def test_an_unreadable_message_fails_nothing(joe: Asker, jill: Asker, redis: Redis, name: str) -> None:
    bad = Chat.create(jill.id, members=[joe.id], settings=FREE)
    good = Chat.create(jill.id, members=[joe.id])
    cursor = joe("GET", "sync").json()["cursor"]
    seq = put_into_chat(redis, bad.id, b=BODIES[name], s=jill.id.encode())
    good.send(jill.id, "well")

    told = strictly(joe("GET", f"sync?timeout=0&cursor={cursor}"))
    said = [each["text"] for chat in told["chats"] for each in chat["messages"] if each["event"] is None]
    assert sorted(said) == [UNREADABLE, "well"]
    [message] = [each for chat in told["chats"] for each in chat["messages"] if each["is_unreadable"]]
    assert (message["seq"], message["sender"], message["data"]) == (seq, jill.id, None)
    for path in ("sync", "chats"):
        assert {each["id"] for each in strictly(joe("GET", path))["chats"]} == {bad.id, good.id}
    assert strictly(joe("GET", f"chats/{bad.id}"))["last_message"]["text"] == UNREADABLE
    assert strictly(joe("GET", f"chats/{bad.id}/messages"))["messages"][-1]["text"] == UNREADABLE
    assert strictly(joe("GET", f"chats/{bad.id}/messages/{seq}"))["is_unreadable"]

    visitor = Client()
    visitor.force_login(User.objects.get(pk=joe.id))
    assert UNREADABLE in visitor.get("/chat/").text
    assert UNREADABLE in visitor.get(f"/chat/{bad.id}/").text


def test_a_chat_that_cannot_be_read_is_unavailable_not_gone(joe: Asker, jill: Asker, redis: Redis) -> None:
    bad, good = (Chat.create(jill.id, members=[joe.id], text="hello") for _ in range(2))
    cursor = joe("GET", "sync").json()["cursor"]
    redis.hset(ChatKeys(bad.id).chat, "max_age", b"\xff")
    redis.hincrby(ChatKeys(bad.id).chat, "seq", 1)

    for path in ("sync", "chats"):
        told = strictly(joe("GET", path))
        assert ([each["id"] for each in told["chats"]], told["unavailable"]) == ([good.id], [bad.id])
    told = strictly(joe("GET", f"sync?timeout=0&cursor={cursor}"))
    assert (told["gone"], told["unavailable"]) == ([], [bad.id])
    visitor = Client()
    visitor.force_login(User.objects.get(pk=joe.id))
    assert "1 of your chats cannot be shown" in visitor.get("/chat/").text


@pytest.mark.parametrize("depth", [32, 33, 60, 1_480])
def test_how_deep_data_may_be_does_not_depend_on_the_python(joe: Asker, jill: Asker, depth: int) -> None:
    chat = Chat.create(joe.id, members=[jill.id])
    for path in (f"chats/{chat.id}/messages", f"mailboxes/{jill.id}", "chats"):
        answer = joe("POST", path, raw=b'{"text": "a", "data": ' + b"[" * depth + b"]" * depth + b"}")
        if depth <= 32:
            assert answer.status_code == 201, answer.content
        elif depth <= 60:
            problem(answer, 422, "invalid-message")
        else:
            problem(answer, 400, "malformed")
