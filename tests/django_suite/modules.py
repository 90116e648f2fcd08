"""
Django's test modules, imported as they are; only their settings lead elsewhere.

While they are imported, django.test.override_settings is one that puts a backend of backends.py in the place of
Django's Dummy and Immediate backend. So each use of it is met: at a class, at a method and within a test.
Subclasses with settings of their own would miss the last two, and those tests would pass on Django's backends.
"""

from __future__ import annotations

import importlib
import sys
import unittest
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import django
import django.test
from django.test.utils import override_settings

#: What stands in for which of Django's backends.
BACKENDS = {
    "django.tasks.backends.dummy.DummyBackend": "tests.django_suite.backends.Dummy",
    "django.tasks.backends.immediate.ImmediateBackend": "tests.django_suite.backends.Immediate",
}
#: OPTIONS for ours: what those tests take for granted.
OPTIONS: dict[str, Any] = {"max_attempts": 1}


class Redirected(override_settings):
    """override_settings, with our backends for Django's."""

    def __init__(self, **settings: Any) -> None:
        if "TASKS" in settings:
            settings["TASKS"] = {alias: redirect(given) for alias, given in settings["TASKS"].items()}
        super().__init__(**settings)


def redirect(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of one alias of TASKS. Those of any other backend stay as they are."""
    ours = BACKENDS.get(given["BACKEND"])
    return {**given, "BACKEND": ours, "OPTIONS": OPTIONS} if ours else given


def load(folder: Path) -> dict[str, ModuleType]:
    """The test modules of tests/tasks, by their names. *folder* is Django's `tests`."""
    names = sorted(path.stem for path in (folder / "tasks").glob("test_*.py"))
    if not names:
        raise FileNotFoundError(
            f"No test_*.py in {folder}/tasks. Delete {folder}, and run: python -m tests.upstream"
        )
    sys.path.insert(0, str(folder))  # stays: tasks are found by their path, `tasks.tasks.noop_task`
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(django.test, "override_settings", Redirected))
        if django.VERSION < (6, 0):
            stack.enter_context(backport_as_django())
        return {name: importlib.import_module(f"tasks.{name}") for name in names}


def is_about_a_backend(module: ModuleType) -> bool:
    """Whether it names a backend that ours stands in for; else it tests django.tasks with backends of its own."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    return any(name in source for name in BACKENDS)


def cases_of(module: ModuleType) -> dict[str, type[unittest.TestCase]]:
    """The test cases that *module* itself defines."""
    return {
        name: found
        for name, found in vars(module).items()
        if isinstance(found, type)
        and issubclass(found, unittest.TestCase)
        and found.__module__ == module.__name__
    }


def names_of(case: type[unittest.TestCase]) -> list[str]:
    """The tests of *case*, as `TestCase.test_name`."""
    return [f"{case.__name__}.{name}" for name in unittest.TestLoader().getTestCaseNames(case)]


@contextmanager
def backport_as_django() -> Iterator[None]:
    """`from django.tasks import ...` gets the backport, under the names that Django gives to its things."""
    parts = ["", ".base", ".exceptions", ".signals", ".backends", ".backends.base"]
    parts += [".backends.dummy", ".backends.immediate"]
    modules = {f"django.tasks{part}": importlib.import_module(f"django_tasks{part}") for part in parts}
    theirs = modules["django.tasks.exceptions"]
    exceptions = ModuleType("django.tasks.exceptions")
    vars(exceptions).update(
        {name.removesuffix("Error"): found for name, found in vars(theirs).items() if name[0] != "_"}
    )
    modules["django.tasks.exceptions"] = exceptions
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]
