"""The API does what its description says: for made-up requests, right and wrong, against every address."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import randrange
from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest
from django.test.utils import override_settings
from hypothesis import HealthCheck, settings
from redis import Redis
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks

import components
from components.services.chat import Chat, ChatSettings
from components.services.chat.records import EventKind, Role
from components.services.mailboxes import Mailbox
from components.views.api.problems import KINDS
from components.views.api.urls import urlpatterns
from tests.views.serving import WITHOUT_DATABASE, Person

FILE = Path(components.__file__).parent / "static" / "components" / "openapi.json"
DESCRIPTION: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
METHODS = ("get", "post", "put", "patch", "delete")
OPERATIONS = [
    (path, method) for path, item in DESCRIPTION["paths"].items() for method in METHODS if method in item
]

#: What a description cannot say: that a cursor was given, that a title can be printed, that two fields exclude each other.
UNSAID = {
    ("POST", "/chats"),
    ("PATCH", "/chats/{chat_id}"),
    ("GET", "/sync"),
    ("POST", "/sync"),
    ("GET", "/chats/{chat_id}/messages"),
}
CHAT_ID = re.compile(DESCRIPTION["components"]["parameters"]["chat_id"]["schema"]["pattern"])

config = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx", 503]}}}
)
# Who asks is another matter, and tested elsewhere.
schema = schemathesis.openapi.from_dict({**DESCRIPTION, "security": []}, config=config)
schema.app = get_wsgi_application()

load_all_checks()


def only_joe(request: HttpRequest) -> Person | None:
    return Person("joe") if request.headers["Authorization"] == "Bearer joe" else None


SETTINGS = {**WITHOUT_DATABASE, "API_AUTHENTICATION": "tests.views.test_openapi.only_joe"}


@pytest.fixture
def chat(redis: Redis) -> str:
    """One of joe and jill, that knows no hurry."""
    chat = Chat.create("joe", members=["jill"], text="hello", settings=ChatSettings(rate_limit=0))
    Mailbox("joe").push("jill", "hello")
    Mailbox("jill").push("joe", "hello")
    return chat.id


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@schema.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_it_answers_as_described(case: Case, chat: str) -> None:
    is_unsaid = (case.method, case.path) in UNSAID
    excluded = [CHECKS.get_one("positive_data_acceptance")] if is_unsaid else []
    if CHAT_ID.fullmatch(str(case.path_parameters.get("chat_id", ""))) and randrange(4):
        case.path_parameters["chat_id"] = chat
    with override_settings(COMPONENTS=SETTINGS, ALLOWED_HOSTS=["*"]):
        case.call_and_validate(headers={"Authorization": "Bearer joe"}, excluded_checks=excluded)
