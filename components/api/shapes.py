"""The shapes of answers: TypedDicts, whose annotations are also what the description of the API is made from."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

_Shape = TypeVar("_Shape")

LARGEST = 2**53 - 1  # the largest whole number that every JSON reader represents exactly


class Keyword(NamedTuple):
    """A keyword of JSON Schema in an annotation."""

    name: str
    value: Any


Instant = Annotated[str, Keyword("format", "date-time")]
People = Annotated[dict[str, str], "The names to show for the ids in this answer."]

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer", "minimum": 0, "maximum": LARGEST},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
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


def schema_of(kind: Any, named: dict[str, Any]) -> dict[str, Any]:
    """
    Return the JSON Schema of a type. Annotations are its description, or keywords.

    A TypedDict or an enumeration is put into *named* under its name, and is referred to.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        schema = schema_of(arguments[0], named)
        for note in arguments[1:]:
            schema |= dict([note if isinstance(note, Keyword) else ("description", note)])
        return schema
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0], named)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], named)}
    if arguments:  # X | None
        schema = schema_of(arguments[0], named)
        if "$ref" in schema:
            return {"anyOf": [schema, {"type": "null"}]}
        return {**schema, "type": [schema["type"], "null"]}
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if kind.__name__ not in named:
        named[kind.__name__] = None  # keeps the type's place before the types to which it refers
        named[kind.__name__] = _definition(kind, named)
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _definition(kind: Any, named: dict[str, Any]) -> dict[str, Any]:
    if issubclass(kind, StrEnum):
        return {"type": "string", "enum": [str(each) for each in kind]}
    hints = get_type_hints(kind, include_extras=True)
    properties = {name: schema_of(hint, named) for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}
