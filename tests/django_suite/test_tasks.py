"""
Django's own tests of django.tasks against RedisBackend, each a test here under the name that it has there.

Those that ask for another class, or that something cannot be done, are listed with the reason. They run too, and
have to fail in just that way: one that passes, or fails otherwise, fails the run. modules.py says how they get here.
"""

from __future__ import annotations

import logging
import unittest
from collections.abc import Iterator
from typing import Any, NamedTuple

import django
import pytest
from django.test.utils import modify_settings

from components.kit.compat import TaskResultDoesNotExist
from tests.django_suite.modules import cases_of, is_about_a_backend, load, names_of
from tests.upstream import django_suite

MODULES = load(django_suite().tests)
CASES = {
    name: case
    for module in MODULES.values()
    if is_about_a_backend(module)
    for name, case in cases_of(module).items()
}
globals().update(CASES)  # where pytest looks for them


class Failure(NamedTuple):
    """Why a test fails against RedisBackend, and with what."""

    reason: str
    message: str
    error: type[Exception] = AssertionError


OTHER_CLASS = "asks whether the backend is an instance of Django's own"
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
