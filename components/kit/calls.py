"""What a decorator has to know of a function: whether its work is done when its call returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction


def is_awaited(function: Callable[..., Any]) -> bool:
    """Return whether a call is awaited: of a coroutine function, or of an object whose __call__ is one."""
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


def is_generator(function: Callable[..., Any]) -> bool:
    """Return whether a call makes a generator, which runs after the call has returned."""
    return any(
        inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, type(function).__call__)
    )


def refuse_later(function: Callable[..., Any], result: Any, what: str) -> None:
    """Raise TypeError if a call has returned what does its work later, where *what* has no effect."""
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError(
            f"{name_of(function)} has returned a {type(result).__name__}, which runs after the call: {what} has no "
            "effect. Declare the function with async def, or use a with block where the work is done."
        )


def name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
