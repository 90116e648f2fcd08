"""What is told from the traceback of a failure: the class as people write it, and the message."""

from __future__ import annotations

import pytest

from components.services.queues import TaskFailure
from components.services.queues.worker.execution import _failure


class Refused(Exception):
    """An exception of a module."""


def raised(error: BaseException) -> TaskFailure:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001  (any is looked at)
        return _failure(caught)


def noted() -> ValueError:
    error = ValueError("No: 7")
    error.add_note("In a call of the task send.")
    return error


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KeyError(9), "KeyError", "9"),
        (Refused("no: such card"), f"{__name__}.Refused", "no: such card"),
        (Refused(), f"{__name__}.Refused", ""),
        (ValueError("first line\nsecond line"), "ValueError", "first line"),
        (noted(), "ValueError", "No: 7"),
        (ExceptionGroup("two", [ValueError(1), KeyError(2)]), "ExceptionGroup", "two (2 sub-exceptions)"),
    ],
)
def test_the_message_is_read_from_the_traceback(error: BaseException, kind: str, message: str) -> None:
    failure = raised(error)

    assert (failure.kind, failure.message) == (kind, message)


def test_of_chained_exceptions_the_last_counts() -> None:
    error = ValueError("outer")
    error.__cause__ = KeyError(1)

    assert raised(error).message == "outer"


@pytest.mark.parametrize(
    ("traceback", "message"),
    [
        ("The task was cancelled.", "The task was cancelled."),
        ("", ""),
        ("Traceback (most recent call last):", ""),
    ],
)
def test_what_is_no_traceback_is_a_message(traceback: str, message: str) -> None:
    assert TaskFailure("components.exceptions.TaskCancelled", traceback).message == message
