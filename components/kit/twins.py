"""
Write a method and its asynchronous twin once; docs/architecture.md has an example.

The method gets the synchronous client; the twin gets the client of the running event loop. For type checkers and
help(), both keep the parameters, the defaults and the docstring of the original.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_async_client, get_client

_Self = TypeVar("_Self")
_P = ParamSpec("_P")
_T = TypeVar("_T")


def twins(
    logic: Callable[Concatenate[_Self, AnyRedis, _P], Coroutine[Any, Any, _T]],
) -> tuple[Callable[Concatenate[_Self, _P], _T], Callable[Concatenate[_Self, _P], Coroutine[Any, Any, _T]]]:
    """Return a method that runs *logic* to its end, and one that is awaited."""

    def method(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return at_once(logic(self, get_client(), *args, **kwargs))

    async def twin(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await logic(self, get_async_client(), *args, **kwargs)

    name = logic.__name__.removeprefix("_")
    _dress(method, logic, name, logic.__doc__)
    _dress(twin, logic, f"a{name}", f"{name}(), awaited.")
    return method, twin


def _dress(made: Callable[..., Any], logic: Callable[..., Any], name: str, text: str | None) -> None:
    made.__name__, made.__doc__, made.__module__ = name, text, logic.__module__
    made.__qualname__ = logic.__qualname__.rpartition(".")[0] + f".{name}"
    made.__annotations__ = {key: each for key, each in logic.__annotations__.items() if key != "client"}
    signature = inspect.signature(logic)
    shown = [each for each in signature.parameters.values() if each.name != "client"]
    made.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
