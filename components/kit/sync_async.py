"""
Write a method and its asynchronous twin once; docs/architecture.md has an example.

    async def _get(self, client, key):  ... await answer(client.get(key)) ...
    get, aget = both(_get)

The method gets the synchronous client, with which the coroutine never really waits, so that it runs to its end at
once, without a loop; the twin gets the client of the running event loop. For type checkers and help(), both keep the
parameters, the defaults and the docstring of the original.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Concatenate, ParamSpec, TypeVar

from components.kit.client import AnyRedis, get_async_client, get_client

_Self = TypeVar("_Self")
_P = ParamSpec("_P")
_T = TypeVar("_T")


def both(
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
    logic.__qualname__ = method.__qualname__  # which a TypeError names
    return method, twin


def _dress(made: Callable[..., Any], logic: Callable[..., Any], name: str, text: str | None) -> None:
    made.__name__, made.__doc__, made.__module__ = name, text, logic.__module__
    made.__qualname__ = logic.__qualname__.rpartition(".")[0] + f".{name}"
    made.__annotations__ = {key: each for key, each in logic.__annotations__.items() if key != "client"}
    signature = inspect.signature(logic)
    shown = [each for each in signature.parameters.values() if each.name != "client"]
    made.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]


# A task that is itself cancelled this often is not started again: nobody wants it to finish any more.
_MOST_STARTS = 100


async def answer(sent: Any) -> Any:
    """Return the result of a call to a client, synchronous or asynchronous."""
    return await sent if isinstance(sent, Awaitable) else sent


def at_once(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine that awaits nothing. Raises TypeError if it awaits something."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    coroutine.close()
    raise TypeError(
        "A synchronous method was called with an asynchronous client. Use the method with the leading a."
    )


def cancellations() -> int:
    """
    Return how often the running task was cancelled; 0 outside of a task.

    Loops that wait need this, because asyncio.wait_for() of Python 3.11, which redis-py uses to send over TCP, may
    return normally and hide a cancellation.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return 0
    return task.cancelling() if task else 0


async def to_its_end(start: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """
    Await what *start* returns, with either client, and return its result. Use this to release something.

    If the caller is cancelled meanwhile, however often, *start* is called again, so it must be safe to repeat, and
    CancelledError is raised when the work is done. A loop that ends cancels all of its tasks, including the one
    started here; then, too, *start* is called again.
    """
    try:
        return await start()
    except asyncio.CancelledError:
        for _ in range(_MOST_STARTS):
            task = asyncio.ensure_future(start())
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # marks the exception as retrieved
                break
        raise
