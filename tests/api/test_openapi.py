"""
The description as a whole. What it says about each address is in test_contract.py.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from io import StringIO
from itertools import chain, cycle
from pathlib import Path
from typing import is_typeddict

from django.core.management import call_command
from django.test import Client
from django.utils.translation import override

from components.api import openapi
from components.api.problems import KINDS
from components.api.urls import urlpatterns
from tests.api.test_contract import DESCRIPTION, OPERATIONS

ROOT = Path(__file__).resolve().parents[2]


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
    assert served == {(each.path, each.method) for each in OPERATIONS}


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
