"""
The description as a whole; and requests that are made up from it, the same in each run, so that only a change makes
them fail. What each address promises is in test_contract.py.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from io import StringIO
from itertools import chain, cycle
from pathlib import Path
from typing import Any, is_typeddict

import pytest
import schemathesis
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest
from django.test import Client
from django.test.utils import override_settings
from django.utils.translation import override
from hypothesis import HealthCheck, settings
from redis import Redis
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks

from components.api import openapi
from components.api.problems import KINDS
from components.api.urls import urlpatterns
from components.services.chat import Chat, ChatSettings, EventKind, Role
from components.services.mailboxes import Fate, Mailbox
from tests.api.serving import WITHOUT_DATABASE, Person

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTION: dict[str, Any] = json.loads(openapi.FILE.read_text(encoding="utf-8"))
METHODS = ("get", "post", "put", "patch", "delete")
OPERATIONS = [
    (path, method) for path, item in DESCRIPTION["paths"].items() for method in METHODS if method in item
]

#: What a description cannot say: that a cursor was given, that a text can be printed, that a field excludes another.
UNSAID = {
    ("POST", "/chats"),
    ("PATCH", "/chats/{chat_id}"),
    ("GET", "/sync"),
    ("POST", "/sync"),
    ("GET", "/chats/{chat_id}/messages"),
    ("GET", "/chats/{chat_id}/members"),
    ("GET", "/chats/{chat_id}/search"),
    ("POST", "/chats/{chat_id}/typing"),  # five at once, then too-fast
    ("GET", "/books/{book}"),
    ("POST", "/books/{book}/select"),
}
CHAT_ID = re.compile(DESCRIPTION["components"]["parameters"]["chat_id"]["schema"]["pattern"])

config = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx", 503]}}}
)
# Authentication is tested elsewhere.
schema = schemathesis.openapi.from_dict({**DESCRIPTION, "security": []}, config=config)
schema.app = get_wsgi_application()

load_all_checks()


def only_joe(request: HttpRequest) -> Person | None:
    return Person("joe") if request.headers["Authorization"] == "Bearer joe" else None


SETTINGS = {**WITHOUT_DATABASE, "API_AUTHENTICATION": "tests.api.test_openapi.only_joe"}


@pytest.fixture
def chat(redis: Redis) -> str:
    """A chat of joe and jill without a rate limit."""
    chat = Chat.create("joe", members=["jill"], text="hello", settings=ChatSettings(rate_limit=0))
    Mailbox("joe").push("jill", "hello")
    Mailbox("jill").push("joe", "hello")
    return chat.id


@pytest.mark.slow
@pytest.mark.django_db  # of which nothing is asked, but Django looks after its connections at each request
@schema.parametrize()
@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_it_answers_as_described(case: Case, chat: str) -> None:
    is_unsaid = (case.method, case.path) in UNSAID
    excluded = [CHECKS.get_one("positive_data_acceptance")] if is_unsaid else []
    if CHAT_ID.fullmatch(str(case.path_parameters.get("chat_id", ""))) and len(str(case.body)) % 4:
        case.path_parameters["chat_id"] = chat
    with override_settings(COMPONENTS=SETTINGS, ALLOWED_HOSTS=["*"]):
        case.call_and_validate(headers={"Authorization": "Bearer joe"}, excluded_checks=excluded)


# The description as a whole


def test_the_file_holds_what_the_endpoints_declare() -> None:
    out = StringIO()
    with override("de"):  # the description is English in every language
        call_command("openapi", stdout=out)

    assert openapi.FILE.read_text(encoding="utf-8") == out.getvalue(), (
        "Run manage.py openapi, and store its output."
    )


def test_no_two_shapes_have_the_same_name() -> None:
    """The description refers to a shape by its name alone."""
    shapes = [
        each
        for module in list(sys.modules.values())
        if re.match(r"components\..*\b(api|shapes)\b", module.__name__)
        for each in vars(module).values()
        if is_typeddict(each) and each.__module__ == module.__name__
    ]
    names = Counter(each.__name__ for each in shapes)

    assert names["FoundMessages"] == 1
    assert [name for name, number in names.items() if number > 1] == []


def test_exactly_the_addresses_and_methods_that_exist_are_described() -> None:
    def described(route: str) -> str:
        return "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", route)

    served = {
        (described(str(each.pattern)), method)
        for each in chain.from_iterable(getattr(each, "url_patterns", [each]) for each in urlpatterns)
        if each.name not in (None, "api-problem")
        for method in map(str.lower, each.callback.endpoint.handlers)
        if method != "head"
    }
    assert served == set(OPERATIONS)


def test_the_description_has_the_words_of_the_services() -> None:
    schemas = DESCRIPTION["components"]["schemas"]

    assert schemas["EventKind"]["enum"] == list(EventKind)
    assert schemas["Role"]["enum"] == list(Role)
    assert schemas["Delivery"]["properties"]["fate"]["enum"] == [each.replace(" ", "_") for each in Fate]


def test_it_is_served_as_a_static_file(client: Client) -> None:
    answer = client.get("/static/components/openapi.json")

    assert answer.status_code == 200
    assert json.loads(b"".join(answer)) == DESCRIPTION


def test_the_documentation_lists_exactly_the_types_of_problems() -> None:
    errors = (ROOT / "docs" / "http-api.md").read_text(encoding="utf-8").partition("## Errors")[2]
    table = {
        (int(status), kind)
        for line in re.findall(r"^\| [0-9, ]+ \|.*", errors, re.MULTILINE)
        for status, kind in zip(cycle(re.findall(r"\b\d{3}\b", line)), re.findall(r"`([a-z-]+)`", line))
    }

    assert table == {(kind.status, name) for name, kind in KINDS.items()}
