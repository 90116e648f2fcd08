"""Each public name has an example that runs, and each error has one that raises it."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from components import exceptions
from components.testing import fixtures
from docs.tables import DOCS, errors
from tests.docs import names
from tests.docs.blocks import ERRORS, blocks
from tests.docs.names import Name, public_names, without_example

WHERE = "Add them to a block of a page in docs/examples/: methods to one that names their class."


def test_each_public_name_has_an_example():
    missing = list(without_example())

    assert missing == [], f"No example uses {', '.join(missing)}. {WHERE}"


def test_a_name_and_a_method_without_example_are_found(monkeypatch: pytest.MonkeyPatch):
    unknown = Name("components.services.chat", "Telegraph")
    more = Name("components.services.chat", "Chat", frozenset({"send", "asend", "whisper"}))
    monkeypatch.setattr(names, "public_names", lambda: iter([unknown, more]))

    assert list(without_example()) == [str(unknown), f"{more}.whisper"]


def test_there_are_public_names():
    found = list(public_names())

    assert len(found) > 300
    assert sum(len(name.methods) for name in found) > 400


def test_each_error_is_caught_in_an_example_that_raises_it_or_says_why_not():
    caught = {
        name.id
        for block in blocks(ERRORS)
        for node in ast.walk(ast.parse(block.code))
        if isinstance(node, ast.ExceptHandler) and node.type
        for name in ast.walk(node.type)
        if isinstance(name, ast.Name)
    }
    #: Errors of tasks are read, not caught: the example lists them.
    of_tasks = {
        name for block in blocks(ERRORS) for name in re.findall(r"components\.exceptions\.(\w+)", block.code)
    }
    listed = {error.__name__ for error in errors()}

    assert caught | of_tasks | TOLD >= listed, listed - caught - of_tasks - TOLD
    assert len([block for block in blocks(ERRORS) if block.calm]) <= 6


#: Errors that workers store as the reason why a task failed.
TOLD = {
    *("EndNotStored", "MailNotSent", "ResultTooLarge", "StepRefused"),
    *("TaskCancelled", "TaskTimedOut", "WorkerDied"),
}


def test_each_error_says_what_to_do():
    silent = [error.__name__ for error in errors() if len(re.findall(r"[.;:](?: |$)", _said(error))) < 2]

    assert silent == [], "Add a sentence to the docstring: what can the reader do?"


def _said(error: type[exceptions.ComponentsError]) -> str:
    return " ".join((error.__doc__ or "").split())


def test_each_fixture_is_described():
    page = (DOCS / "testing.md").read_text(encoding="utf-8")
    made = [
        name for name, value in vars(fixtures).items() if type(value).__name__ == "FixtureFunctionDefinition"
    ]

    assert len(made) >= 4
    assert [name for name in made if f"`{name}`" not in page] == []
    assert inspect.isfunction(fixtures.pytest_addoption)
