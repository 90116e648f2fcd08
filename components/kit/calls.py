"""What a decorator has to know of a function: whether its work is done when its call returns."""

import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from asgiref.sync import iscoroutinefunction

_P = ParamSpec("_P")
_T = TypeVar("_T")

#: How a function is called. The decorator on it counts, which may add arguments or take some.
signature_of = partial(inspect.signature, follow_wrapped=False)
if sys.version_info >= (3, 14):  # annotations may name what is imported for type checkers only
    from annotationlib import Format

    signature_of = partial(signature_of, annotation_format=Format.STRING)


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


def around(
    function: Callable[_P, _T],
    what: str,
    block: Callable[[], AbstractContextManager[Any]],
    ablock: Callable[[], AbstractAsyncContextManager[Any]],
) -> Callable[_P, _T]:
    """
    Return *function*, each call of which is made within block(), or awaited within ablock().

    Raises TypeError, which says *what* has no effect, for a function that does its work after its call.
    """
    if hasattr(function, "enqueue"):
        raise TypeError(f"{what} was put on a task, which runs without it. Put it below @task, not above.")
    if is_generator(function):
        raise TypeError(
            f"{name_of(function)} is a generator: it runs after its call has returned, so {what} has no effect. "
            "Use a with block inside it."
        )

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with block():
            result = function(*args, **kwargs)
            refuse_later(function, result, what)
            return result

    @wraps(function)
    async def awaited(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        async with ablock():
            return await cast("Any", function)(*args, **kwargs)

    made: Any = awaited if is_awaited(function) else called
    with suppress(ValueError):  # some that are written in C do not say
        made.__signature__ = signature_of(function)  # calls pass on what they get
    return cast("Callable[_P, _T]", made)


def name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
