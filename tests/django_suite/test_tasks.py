"""
Django's test modules, imported as they are; only their settings lead elsewhere.

While they are imported, django.test.override_settings is one that puts a backend of backends.py in the place of
Django's Dummy and Immediate backend. So each use of it is met: at a class, at a method and within a test.
Subclasses with settings of their own would miss the last two, and those tests would pass on Django's backends.
"""

import importlib
import logging
import sys
import unittest
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import django
import django.test
import pytest
from django.test.utils import modify_settings, override_settings

from components.kit.compat import TaskResultDoesNotExist
from tests.upstream import django_suite

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


MODULES = load(django_suite().tests)
CASES = {
    name: case
    for module in MODULES.values()
    if is_about_a_backend(module)
    for name, case in cases_of(module).items()
}
globals().update(CASES)  # where pytest looks for them
for _case in CASES.values():
    _case.available_apps = (
        None  # Django's [] would leave a database without permissions to the tests after it
    )
del _case


class Failure(NamedTuple):
    """Why a test fails against RedisBackend, and with what."""

    reason: str
    message: str
    error: type[Exception] = AssertionError


OTHER_CLASS = "asks whether the backend is an instance of Django's own"
#: These run too, and have to fail in just this way: one that passes, or fails otherwise, fails the run.
FAILURES = {
    "TaskTestCase.test_using_correct_backend": Failure(
        OTHER_CLASS, r"is not an instance of .+\.DummyBackend'"
    ),
    "TaskTestCase.test_get_backend": Failure(OTHER_CLASS, r"is not an instance of .+\.DummyBackend'"),
    "DummyBackendTestCase.test_using_correct_backend": Failure(
        OTHER_CLASS, r"is not an instance of .+\.DummyBackend'"
    ),
    "ImmediateBackendTestCase.test_using_correct_backend": Failure(
        OTHER_CLASS, r"is not an instance of .+\.ImmediateBackend'"
    ),
    "ImmediateBackendTestCase.test_cannot_get_result": Failure(
        "asks that results cannot be retrieved; here they can", "^123$", TaskResultDoesNotExist
    ),
    "ImmediateBackendTestCase.test_cannot_refresh_result": Failure(
        "asks that results cannot be refreshed; here they can", "^NotImplementedError not raised$"
    ),
    "ImmediateBackendTestCase.test_cannot_pass_run_after": Failure(
        "asks that tasks cannot be delayed; here they can", r"^InvalidTask(Error)? not raised$"
    ),
}
IS_BACKPORT = django.VERSION < (6, 0)
if IS_BACKPORT:
    FAILURES["DummyBackendTestCase.test_validate_disallowed_async_task"] = Failure(
        "the backport spells a message in another way",
        r"'Backend does not support async Tasks\.' not found in 'Backend does not support async tasks\.'",
    )


def expect(failures: dict[str, Failure]) -> None:
    """Mark Django's tests of those names: they have to fail."""
    for case in CASES.values():
        for name in failures.keys() & set(names_of(case)):
            reason, message, error = failures[name]
            raises = pytest.RaisesExc(error, match=message)
            pytest.mark.xfail(strict=True, reason=reason, raises=raises)(
                getattr(case, name.partition(".")[2])
            )


expect(FAILURES)
pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture(autouse=True)
def their_tasks_are_of_an_app() -> Iterator[None]:
    """As Django's own runner has it: only tasks of installed apps run."""
    with modify_settings(INSTALLED_APPS={"append": "tasks"}):
        yield


@pytest.fixture(autouse=True)
def without_djangos_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that meets one of them would prove nothing of ours: it fails."""

    def refuse(self: Any, alias: str, params: Any) -> None:
        pytest.fail(f"TASKS[{alias!r}] has led to Django's own {type(self).__name__}")

    for name in ("DummyBackend", "ImmediateBackend"):
        monkeypatch.setattr(getattr(MODULES["test_tasks"], name), "__init__", refuse)


@pytest.fixture(autouse=IS_BACKPORT)
def logger_of_the_backport(monkeypatch: pytest.MonkeyPatch) -> None:
    """What listens to Django's logger hears the backport's."""
    loggers = logging.Logger.manager.loggerDict
    monkeypatch.setitem(loggers, "django.tasks", logging.getLogger("django_tasks"))


def test_every_test_of_a_backend_is_here_once() -> None:
    elsewhere = [name for name, module in MODULES.items() if not is_about_a_backend(module)]
    wanted = [case for name in MODULES.keys() - elsewhere for case in cases_of(MODULES[name]).values()]
    here = [
        case for case in globals().values() if isinstance(case, type) and issubclass(case, unittest.TestCase)
    ]

    assert elsewhere == ["test_custom_backend"]  # of django.tasks itself, with backends of its own
    assert sorted(map(str, here)) == sorted(map(str, wanted))
    assert all(names_of(case) for case in here)


def test_listed_tests_exist_in_djangos_suite() -> None:
    assert {name for case in CASES.values() for name in names_of(case)} >= FAILURES.keys()
