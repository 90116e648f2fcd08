"""Addresses that need no Redis: people by name, types of problems, unknown addresses."""

from __future__ import annotations

import pytest
from django.test import Client
from django.test.utils import override_settings

from components.api.problems import KINDS
from tests.fixtures.api import Asker, problem


def test_people_are_found_by_their_exact_names(joe: Asker, jill: Asker) -> None:
    answer = joe("GET", "people?name=jill&name=Jill&name=nobody")

    assert answer.status_code == 200
    assert answer.json() == {"people": [{"id": jill.id, "name": "jill"}]}


@pytest.mark.parametrize(
    "query", ["", "?id=1", "?name=joe&limit=3", "?" + "name=a&" * 51, "?name=" + "a" * 501]
)
def test_a_search_without_names_is_refused(joe: Asker, query: str) -> None:
    problem(joe("GET", f"people{query}"), 422, "invalid-value")


@pytest.mark.parametrize("name", ["%00", "%ff%fe", "%ed%a0%80", "joe%00"])
def test_a_name_that_is_not_text_belongs_to_nobody(joe: Asker, name: str) -> None:
    assert joe("GET", f"people?name={name}").json() == {"people": []}


@pytest.mark.parametrize("path", ["people", "chats", "sync", "mailbox", "nowhere"])
def test_anonymous_visitors_are_told_to_log_in(nobody: Asker, path: str) -> None:
    answer = nobody("GET", path)

    problem(answer, 401, "not-authenticated")
    assert answer["WWW-Authenticate"] == "Session"


@pytest.mark.parametrize(
    "path", ["nowhere", "people/", "chats/", "chats/a/b/c/d", "chats//messages", "%2e%2e"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_an_unknown_address_is_answered_by_a_problem_and_not_a_page(
    joe: Asker, method: str, path: str
) -> None:
    problem(joe(method, path), 404, "not-found")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE"])
def test_a_wrong_method_is_refused_with_the_allowed_ones(joe: Asker, method: str) -> None:
    answer = joe(method, "people?name=joe")

    problem(answer, 405, "method-not-allowed")
    assert answer["Allow"] == "GET, HEAD"


def test_head_is_a_get_without_its_body(joe: Asker) -> None:
    assert joe("HEAD", "people?name=joe").status_code == 200


@pytest.mark.parametrize("kind", KINDS)
def test_each_type_of_problem_explains_itself(client: Client, kind: str) -> None:
    answer = client.get(f"/api/problems/{kind}")

    assert answer.status_code == 200
    assert answer.text.startswith(f"{KINDS[kind].status} {KINDS[kind].title}")


def test_a_problem_is_in_the_language_of_the_client_but_not_its_type(client: Client) -> None:
    answer = client.get("/api/people", headers={"Accept-Language": "de"})

    told = problem(answer, 401, "not-authenticated")
    assert told["title"] == "Zuerst anmelden"
    assert told["detail"] == "Es gibt keine gültige Sitzung und kein gültiges Bearer-Token."
    explained = client.get(told["type"], headers={"Accept-Language": "de"})
    assert explained.text.startswith("401 Zuerst anmelden. ")


def test_an_unknown_type_of_problem_is_not_found(client: Client) -> None:
    assert client.get("/api/problems/made-up").status_code == 404


def test_answers_may_not_be_cached(joe: Asker) -> None:
    for path in ("people?name=joe", "people", "nowhere"):
        answer = joe("GET", path)
        assert answer["Cache-Control"] == "no-store"
        assert {"Authorization", "Cookie"} <= set(answer["Vary"].split(", "))


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
    with override_settings(COMPONENTS={"API_AUTHENTICATION": f"tests.api.test_people.{hook}"}):
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
