"""Calls of tasks that wait until the transaction around them is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections

from components.exceptions import RedisUnavailable
from components.kit.compat import TaskResult


@dataclass(repr=False)  # Django logs it if it fails, and arguments may be secret
class WaitingCalls:
    """A hook that stores calls of the task *path*, and fills in their *results*, after the commit."""

    path: str
    results: Sequence[TaskResult[..., Any]]
    store: Callable[[], None]
    #: Whether it was called. Django's captureOnCommitCallbacks(execute=True) keeps the hooks that it has called.
    is_called: bool = False

    def __post_init__(self) -> None:
        self.__qualname__ = "WaitingCalls"  # which Django 5.2 logs

    def __call__(self) -> None:
        self.is_called = True
        try:
            self.store()
        except RedisUnavailable as error:
            ids = ", ".join(result.id for result in self.results)
            lost = f"These calls of {self.path} were to be stored after the commit and are lost: {ids}."
            raise RedisUnavailable(f"{error} {lost}") from error


def waiting_calls() -> Iterator[tuple[str, WaitingCalls]]:
    """Yield the calls that wait in this thread, each with the alias of its database."""
    for connection in connections.all(initialized_only=True):
        for _savepoints, hook, *_ in connection.run_on_commit:
            if isinstance(hook, WaitingCalls) and not hook.is_called:
                yield connection.alias, hook
