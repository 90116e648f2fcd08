"""
counted and timed: what a function or a block does, counted in this process as count() does.

A name "pay:card" leads to counters beside it: "pay-errors:card" of those that raised, and "pay-us:card" of the
microseconds that all of them took. Counters are whole numbers, so a mean is a quotient of two of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from time import perf_counter_ns
from typing import Any, Self, TypeVar

from components.kit.values import check_name
from components.services.counters.buffers import count

_F = TypeVar("_F", bound=Callable[..., Any])


def beside(name: str, what: str) -> str:
    """The name of a counter that tells *what* of that called *name*."""
    family, colon, member = name.partition(":")
    return f"{family}-{what}{colon}{member}"


class counted:  # noqa: N801  (used as a decorator and in a with statement)
    """
    Count under *name* how often a function is called, or a block begun; under "<name>-errors" how often it raised.

        @counted("mails")
        def send(...): ...

        with counted("imports"): ...
    """

    def __init__(self, name: str) -> None:
        self._name = check_name("counter", name)
        self._errors = check_name("counter", beside(name, "errors"))

    def __call__(self, function: _F) -> _F:
        if iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self._anew():
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self._anew():
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        count(self._name)
        if kind is not None and issubclass(kind, Exception):
            count(self._errors)

    def _anew(self) -> counted:
        """For one of many calls that may overlap."""
        return self


class timed(counted):  # noqa: N801  (as counted)
    """The same, and under "<name>-us" how many microseconds it took."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._microseconds = check_name("counter", beside(name, "us"))
        self._began = 0

    def __enter__(self) -> Self:
        self._began = perf_counter_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        count(self._microseconds, (perf_counter_ns() - self._began) // 1_000)
        super().__exit__(kind, error, trace)

    def _anew(self) -> timed:
        return timed(self._name)
