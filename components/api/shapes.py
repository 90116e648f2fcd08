"""
The shapes of requests and answers, by which msgspec checks the ones and from which it describes both.

A request is a Struct, an answer is a TypedDict, and annotations have the bounds and descriptions of their fields.
"""

from datetime import datetime
from typing import Annotated, Any, TypeVar, cast

from msgspec import Meta, Struct

from components.kit.validation import MAX_NAME

_Shape = TypeVar("_Shape")

LARGEST = 2**53 - 1  # the largest whole number that every JSON reader represents exactly
MOST_PEOPLE = 1_000  # in one request: the default limit of a chat


def about(text: str | None = None, **keywords: Any) -> Meta:
    """Return an annotation that describes a field, with further keywords of JSON Schema, which nobody checks here."""
    return Meta(description=text, extra_json_schema=keywords)


Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
Instant = Annotated[str, about(format="date-time")]
Text = Annotated[str, about(pattern=r"^[^\u0000]*$")]
#: The ids of people.
Ids = Annotated[list[Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]], Meta(max_length=MOST_PEOPLE)]
People = Annotated[dict[str, str], about("The names to show for the ids in this answer.")]


class Request(Struct, forbid_unknown_fields=True):
    """
    The fields of a query or a body. A field with a default is optional. It is UNSET by default where null means
    something else.
    """


class Nothing(Request):
    """An object without fields."""


class TextOrData(Request):
    """A message: at least one of the fields is given and not empty."""

    text: Text = ""
    data: Any = None


#: JSON Schema for what TextOrData says.
TEXT_OR_DATA = {
    "anyOf": [
        {"required": ["text"], "properties": {"text": {"minLength": 1}}},
        {"required": ["data"], "properties": {"data": {"not": {"type": "null"}}}},
    ]
}


def instant(moment: datetime) -> Instant:
    """Return an instant in UTC as ISO 8601."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shaped(kind: type[_Shape], found: object, **others: Any) -> _Shape:
    """Return the TypedDict *kind*, whose values are *others* by name, and else the attributes of *found*."""
    values = dict[str, Any]()
    for name in kind.__annotations__:
        value = others[name] if name in others else getattr(found, name)
        values[name] = instant(value) if isinstance(value, datetime) else value
    return cast(_Shape, values)
