"""
Requests: what an operation is given in its address, query, headers and body.

All of it is checked by the declared types before Redis or the database is asked for anything. A body is read up to
its limit and no further. A wrong value is named, with what it must be.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from django.http import HttpRequest, UnreadablePostError
from django.utils.translation import gettext, ngettext
from msgspec import DecodeError, ValidationError, convert, inspect, json

from components.api.problems import Problem
from components.api.shapes import LARGEST, Request
from components.kit.decoding import MAX_DEPTH, is_too_deep
from components.kit.translation import grouped
from components.kit.validation import MAX_NAME

R = TypeVar("R", bound=Request)

LARGEST_BODY = 65_536  # bytes
LONGEST_KEY = 64  # characters
KEY = "Idempotency-Key"
_KEY = re.compile(rf"[!-~]{{1,{LONGEST_KEY}}}")
_MOST_DIGITS = 16
#: What msgspec says of a field that it does not know, of one that is missing, and of a wrong value.
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_WRONG = re.compile(r".* - at `\$\.(\w+)(\[.*)?`", re.DOTALL)


@dataclass(frozen=True)
class Part:
    """A part of an address. It is passed on as text, and the service checks it."""

    name: str
    #: JSON Schema that describes it.
    schema: Mapping[str, Any] = field(default_factory=dict)

    def read(self, text: str) -> Any:
        """Return what the handler gets. Raises Problem."""
        return text


@dataclass(frozen=True)
class MessageNumber(Part):
    """The number of a message. Text that is not a number gives 404, as an unknown number does."""

    schema: Mapping[str, Any] = field(
        default_factory=lambda: {"type": "integer", "minimum": 0, "maximum": LARGEST}
    )

    def read(self, text: str) -> int:
        is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
        if not is_number or int(text) > LARGEST:
            raise Problem("message-not-found", gettext("The number of a message is a whole number."))
        return int(text)


def person(name: str) -> Part:
    """Return the part *name* of an address, the id of a person."""
    return Part(name, {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": "^[^/]+$"})


#: How the header is described.
KEY_PARAMETER = {
    "name": KEY,
    "in": "header",
    "schema": {"type": "string", "pattern": f"^{_KEY.pattern}$"},
    "required": False,
    "description": "Made by the client, such as a UUID. The same request with the same key is carried out once.",
}


def invalid(name: str, detail: str) -> Problem:
    """Return the problem that the field *name* has a wrong value."""
    return Problem("invalid-value", f"{name}: {detail}", {"field": name})


def key_of(request: HttpRequest) -> str | None:
    """Return the idempotency key, if there is one. Raises Problem."""
    key: str | None = request.headers.get(KEY)
    if key is not None and not _KEY.fullmatch(key):
        said = gettext("It must be 1 to %(most)s ASCII characters without blanks.")
        raise invalid(KEY, said % {"most": LONGEST_KEY})
    return key


def query(request: HttpRequest, kind: type[R]) -> R:
    """Return the query string as a *kind*. Raises Problem."""
    lists = {name for name, each in _types(kind).items() if isinstance(each, inspect.ListType)}
    given = {name: values if name in lists else values[-1] for name, values in request.GET.lists()}
    return _checked(given, kind, strict=False)


def body(request: HttpRequest, kind: type[R], *, largest: int = LARGEST_BODY) -> R:
    """Return the body, a JSON object, as a *kind*. An empty body is an object without fields. Raises Problem."""
    content = _read(request, largest)
    try:
        given = json.decode(content) if content.strip() else {}
    except RecursionError:
        raise _too_deep() from None
    except (DecodeError, UnicodeDecodeError) as error:
        said = gettext("The body is not JSON in UTF-8: %(error)s.")
        raise Problem("malformed", said % {"error": str(error)[:200]}) from None
    if not isinstance(given, dict):
        raise Problem("malformed", gettext("The body is JSON, but not an object."))
    if is_too_deep(given, 2 * MAX_DEPTH):
        # Every Python can handle this depth; services check the depth of a field.
        raise _too_deep()
    for name, value in given.items():  # JSON does not tell 1.0 from 1
        if (
            type(value) is float
            and value.is_integer()
            and isinstance(_types(kind).get(name), inspect.IntType)
        ):
            given[name] = int(value)
    return _checked(given, kind)


def check_media_type(request: HttpRequest) -> None:
    """Refuse a body with another media type than JSON. Raises Problem."""
    if _has_body(request) and request.content_type != "application/json":
        raise Problem("unsupported-media-type", gettext("Send the body as application/json."))


def _checked(given: Mapping[str, Any], kind: type[R], *, strict: bool = True) -> R:
    try:
        return convert(given, kind, strict=strict)
    except ValidationError as error:
        raise _explained(str(error), kind) from None


@cache
def _types(kind: type[Request]) -> dict[str, inspect.Type]:
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return {each.encode_name: _bare(each.type) for each in found.fields}


def _bare(kind: inspect.Type) -> inspect.Type:
    """Return a type without its annotations and without null."""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        kind = kind.type if isinstance(kind, inspect.Metadata) else kind.types[0]
    return kind


def _explained(said: str, kind: type[Request]) -> Problem:
    types = _types(kind)
    if found := _UNKNOWN.fullmatch(said):
        words = gettext("There is no such field. The fields are: %(fields)s.")
        if not types:
            words = gettext("There is no such field. There are no fields.")
        return invalid(found[1][:50], words % {"fields": ", ".join(types)})
    if found := _MISSING.fullmatch(said):
        return invalid(found[1], gettext("It is missing."))
    if found := _WRONG.fullmatch(said):
        return invalid(found[1], _must_be(types[found[1]], is_entry=bool(found[2])))
    return Problem("invalid-value", said)  # in the words of another release of msgspec


def _must_be(kind: inspect.Type, *, is_entry: bool) -> str:
    least, most = (grouped(getattr(kind, name, None) or 0) for name in ("ge", "le"))
    size = getattr(kind, "max_length", None) or LARGEST_BODY
    match kind:
        case inspect.IntType():
            said = gettext("It must be a whole number from %(least)s to %(most)s.")
            return said % {"least": least, "most": most}
        case inspect.FloatType():
            said = gettext("It must be a number from %(least)s to %(most)s.")
            return said % {"least": least, "most": most}
        case inspect.BoolType():
            return gettext("It must be true or false.")
        case inspect.EnumType():
            return gettext("It must be one of: %(values)s.") % {"values": ", ".join(kind.cls)}
        case inspect.ListType(min_length=1):
            said = gettext("Give it 1 to %(most)s times, with at most %(longest)s characters each.")
            return said % {"most": grouped(size), "longest": grouped(MAX_NAME)}
        case inspect.ListType() if is_entry:
            said = gettext("Each id must be text of 1 to %(most)s characters.")
            return said % {"most": grouped(MAX_NAME)}
        case inspect.ListType():
            return gettext("It must be a list of at most %(most)s ids.") % {"most": grouped(size)}
    said = ngettext(
        "It must be text of at most %(count)s character.",
        "It must be text of at most %(count)s characters.",
        size,
    )
    return said % {"count": grouped(size)}


def _has_body(request: HttpRequest) -> bool:
    length = request.META.get("CONTENT_LENGTH") or "0"
    # The server of runserver says text/plain for a request without a type.
    has_type = request.content_type not in ("", "text/plain")
    return length != "0" or has_type or "HTTP_TRANSFER_ENCODING" in request.META


def _read(request: HttpRequest, largest: int) -> bytes:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and len(length) < 20 and int(length) > largest:
        raise _too_large(largest)
    try:
        content: bytes = request.read(largest + 1)
    except UnreadablePostError:
        raise Problem("malformed", gettext("The body ended too early.")) from None
    if len(content) > largest:
        raise _too_large(largest)
    return content


def _too_large(largest: int) -> Problem:
    said = gettext("The body may have at most %(most)s bytes.")
    return Problem("too-large", said % {"most": grouped(largest)})


def _too_deep() -> Problem:
    said = gettext("The body cannot be read: it has more than %(most)s nested lists and objects.")
    return Problem("malformed", said % {"most": MAX_DEPTH})
