"""
The arguments of a task: JSON, up to a size.

A value that would change on its way through the queue is refused when it is pushed, with an error that names it. Two
changes are allowed, as in Django: a tuple becomes a list, and bytes become text.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.datastructures import MultiValueDict
from django.utils.functional import LazyObject

from components.exceptions import BodyTooLarge, NotSerializable

_dump = json.JSONEncoder(separators=(",", ":")).encode  # makes only ASCII, so len() counts bytes
_SHOWN = 80  # characters of a refused value that the error shows
#: The most bytes of the metadata of a task, as JSON.
MOST_METADATA = 4_096
# The most levels of nested lists and dicts. Some releases of Python cannot read deeper ones.
DEEPEST = 100


def normalize(value: Any, where: str, _left: int = DEEPEST) -> Any:
    """Return *value* as read back from JSON. Raises NotSerializable, which calls the value *where*."""
    if not _left:
        raise NotSerializable(
            f"Unsupported type: lists or dicts at {where[:_SHOWN]}… contain themselves, or are nested more than "
            f"{DEEPEST} levels deep; pass deeper data as text."
        )
    if issubclass(type(value), LazyObject):
        str(value)  # which evaluates it
        value = value._wrapped
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise _refuse(value, where, "encode binary data as base64 text") from None
        case list() | tuple():
            return [normalize(item, f"{where}[{index}]", _left - 1) for index, item in enumerate(value)]
        case MultiValueDict():
            raise _refuse(value, where, "pass dict(value.lists()), since a name may have several values")
        case dict() | Mapping():
            return {
                _key(key, where): normalize(item, f"{where}[{key!r}]", _left - 1)
                for key, item in value.items()
            }
    raise _refuse(value, where, _advice(value))


def normalize_call(
    task: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call of *task* as read back from JSON. Raises NotSerializable."""
    try:
        return normalize(tuple(args), "args"), normalize(kwargs, "kwargs")
    except NotSerializable as error:
        error.add_note(f"In a call of the task {task}.")
        raise


def encode(task: str, call: Mapping[str, Any], max_body: int, metadata: Mapping[str, str]) -> str:
    """
    Return the body of a task: what *call* says of the call, with normalized "args" and "kwargs", and the *metadata*.

    Raises BodyTooLarge, which names the largest argument, and the errors of encode_metadata().
    """
    body = _dump({"task": task, **call})
    if len(body) > max_body:
        sizes = {f"args[{index}]": len(_dump(item)) for index, item in enumerate(call["args"])}
        sizes |= {f"kwargs[{key!r}]": len(_dump(item)) for key, item in call["kwargs"].items()}
        largest = max(sizes, key=sizes.__getitem__, default="its name")
        raise BodyTooLarge(
            f"The arguments of {task} are {len(body):,} bytes as JSON, and max_body is {max_body:,}; "
            f"the largest is {largest} with {sizes.get(largest, len(task)):,} bytes. "
            "Keep large data in a file or the database and pass its key."
        )
    # A release that knows no metadata skips it, since it reads the other entries by their names.
    return f'{body[:-1]},"metadata":{encode_metadata(task, metadata)}}}' if metadata else body


def encode_metadata(task: str, metadata: Mapping[str, str]) -> str:
    """Return the metadata of a task as JSON. Raises NotSerializable or BodyTooLarge."""
    for name, value in metadata.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise NotSerializable(
                f"The metadata of {task} have {name!r}: {value!r:.{_SHOWN}}; a name and its value must be text."
            )
    written = _dump(dict(metadata))
    if len(written) > MOST_METADATA:
        raise BodyTooLarge(
            f"The metadata of {task} are {len(written):,} bytes as JSON, and may be {MOST_METADATA:,}. "
            "Pass larger data as arguments, or store them elsewhere and pass their key."
        )
    return written


def _key(key: Any, where: str) -> str:
    if isinstance(key, str):
        return key
    raise NotSerializable(
        f"Unsupported type: {where} has the key {key!r} ({type(key).__name__}); keys of a JSON object are text."
    )


def _refuse(value: Any, where: str, advice: str) -> NotSerializable:
    shown = repr(value)
    if len(shown) > _SHOWN:
        shown = shown[:_SHOWN] + "…"
    return NotSerializable(
        f"Unsupported type: {where} is {shown} ({type(value).__name__}), which is not JSON; {advice}."
    )


def _advice(value: Any) -> str:
    if hasattr(value, "_meta") and hasattr(value, "pk"):
        return "pass its primary key and load the row in the task"
    if isinstance(value, set | frozenset):
        return "pass a list"
    if isinstance(value, float):
        return "JSON has no such number"
    return "pass text, numbers, true, false, null, lists or dicts of them"
