"""
The fields of requests. Each has a name, a type and bounds, which are used to check and to describe it.

An endpoint declares what it takes in its path, query, headers and body. All of it is checked before Redis or the
database is asked for anything. A body is read up to its limit and no further.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast

from django.http import HttpRequest, UnreadablePostError
from django.utils.translation import gettext, ngettext

from components.api.problems import Problem
from components.api.shapes import LARGEST
from components.kit.decoding import MAX_DEPTH, is_too_deep
from components.kit.translation import grouped
from components.kit.validation import MAX_NAME, is_name, is_unicode

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
E = TypeVar("E", bound=StrEnum)

LARGEST_BODY = 65_536  # bytes
MOST_PEOPLE = 1_000  # in one request: the default limit of a chat
LONGEST_KEY = 64  # characters
_MOST_DIGITS = 16
_LONGEST_NUMBER = 32  # characters of a fraction, written out
_KEY = re.compile(rf"[!-~]{{1,{LONGEST_KEY}}}")
_INTEGER = re.compile(r"-?[0-9]{1,17}")


def invalid(name: str, detail: str) -> Problem:
    """Return the problem that the field *name* has a wrong value."""
    return Problem("invalid-value", f"{name}: {detail}", {"field": name})


@dataclass(frozen=True)
class Field(Generic[T_co]):
    """
    A field of a request, of any JSON here. A field that is not required, and is not given, has the value *default*.
    """

    name: str
    default: T_co | None = None
    _: KW_ONLY
    is_required: bool = False
    #: Whether null is allowed. `field in values` tells null from a field that is not given.
    is_nullable: bool = False
    about: str = ""
    #: Further JSON Schema keywords, for bounds that the service checks.
    also: Mapping[str, Any] = field(default_factory=dict)

    is_text: ClassVar[bool] = False

    def check(self, value: Any) -> T_co:
        """Return *value* as the handler gets it. Raises ValueError with a sentence that says what it must be."""
        return cast(T_co, value)

    def bounds(self) -> dict[str, Any]:
        """Return the JSON Schema of what check() accepts."""
        return {}

    def read(self, value: Any) -> T_co | None:
        """Return *value*, checked. Raises Problem."""
        if value is None and self.is_nullable:
            return None
        try:
            return self.check(value)
        except ValueError as error:
            raise invalid(self.name, str(error)) from None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the field, without its description and its default."""
        bounds = self.bounds()
        if self.is_nullable:
            bounds["type"] = [bounds["type"], "null"]
        return {**bounds, **self.also}


@dataclass(frozen=True)
class Text(Field[str]):
    longest: int = LARGEST_BODY  # characters

    is_text = True

    def check(self, value: Any) -> str:
        if not isinstance(value, str) or len(value) > self.longest or not is_unicode(value):
            said = ngettext(
                "It must be text of at most %(count)s character.",
                "It must be text of at most %(count)s characters.",
                self.longest,
            )
            raise ValueError(said % {"count": grouped(self.longest)})
        return value

    def bounds(self) -> dict[str, Any]:
        return {"type": "string"} | ({} if self.longest == LARGEST_BODY else {"maxLength": self.longest})


@dataclass(frozen=True)
class Integer(Field[int]):
    least: int = 0
    most: int = LARGEST

    def check(self, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():  # JSON does not tell 1.0 from 1
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            said = gettext("It must be a whole number from %(least)s to %(most)s.")
            raise ValueError(said % {"least": grouped(self.least), "most": grouped(self.most)})
        return value

    def bounds(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Number(Field[float]):
    least: float = 0
    most: float = LARGEST

    def check(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = math.nan
        if not self.least <= value <= self.most:
            said = gettext("It must be a number from %(least)s to %(most)s.")
            raise ValueError(said % {"least": grouped(self.least), "most": grouped(self.most)})
        return cast(float, value)

    def bounds(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Boolean(Field[bool]):
    def check(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise ValueError(gettext("It must be true or false."))
        return value

    def bounds(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Choice(Field[E]):
    _: KW_ONLY
    of: type[E]

    def check(self, value: Any) -> E:
        if value not in list(self.of):
            raise ValueError(gettext("It must be one of: %(values)s.") % {"values": ", ".join(self.of)})
        return self.of(value)

    def bounds(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.of)}


@dataclass(frozen=True)
class Ids(Field[list[str]]):
    """The ids of people, each once, in the given order."""

    def check(self, value: Any) -> list[str]:
        if not isinstance(value, list) or len(value) > MOST_PEOPLE:
            said = gettext("It must be a list of at most %(most)s ids.")
            raise ValueError(said % {"most": grouped(MOST_PEOPLE)})
        if not all(map(is_name, value)):
            said = gettext("Each id must be text of 1 to %(most)s characters.")
            raise ValueError(said % {"most": grouped(MAX_NAME)})
        return list(dict.fromkeys(value))

    def bounds(self) -> dict[str, Any]:
        id = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
        return {"type": "array", "items": id, "maxItems": MOST_PEOPLE}


@dataclass(frozen=True)
class Names(Field[list[str]]):
    """All values that a query gives under one name."""

    _: KW_ONLY
    most: int

    def check(self, value: Any) -> list[str]:
        if not 1 <= len(value) <= self.most or any(len(each) > MAX_NAME for each in value):
            said = gettext("Give it 1 to %(most)s times, with at most %(longest)s characters each.")
            raise ValueError(said % {"most": grouped(self.most), "longest": grouped(MAX_NAME)})
        return list(value)

    def bounds(self) -> dict[str, Any]:
        name = {"type": "string", "maxLength": MAX_NAME}
        return {"type": "array", "items": name, "minItems": 1, "maxItems": self.most}


@dataclass(frozen=True)
class MessageNumber(Integer):
    """The number of a message in an address. Text that is not a number gives 404, as an unknown number does."""

    def read(self, value: Any) -> int:
        is_number = value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS
        if not is_number or int(value) > self.most:
            raise Problem("message-not-found", gettext("The number of a message is a whole number."))
        return int(value)


class IdempotencyKey(Text):
    def check(self, value: Any) -> str:
        if not _KEY.fullmatch(value):
            said = gettext("It must be 1 to %(most)s ASCII characters without blanks.")
            raise ValueError(said % {"most": LONGEST_KEY})
        return cast(str, value)

    def bounds(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{_KEY.pattern}$"}


def person(name: str) -> Text:
    """Return the part *name* of an address, the id of a person, which the service checks."""
    return Text(name, also={"minLength": 1, "maxLength": MAX_NAME, "pattern": "^[^/]+$"})


IDEMPOTENCY_KEY = IdempotencyKey(
    "Idempotency-Key",
    about="Made by the client, such as a UUID. The same request with the same key is carried out once.",
)
TEXT = Text("text", "", also={"pattern": r"^[^\u0000]*$"})
DATA = Field[Any]("data")
#: JSON Schema for a body with TEXT and DATA: at least one of them is given and not empty.
TEXT_OR_DATA = {
    "anyOf": [
        {"required": ["text"], "properties": {"text": {"minLength": 1}}},
        {"required": ["data"], "properties": {"data": {"not": {"type": "null"}}}},
    ]
}


class Values:
    """The checked values of a request, by field."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def __contains__(self, field: Field[Any]) -> bool:
        """Return whether the request gives the field."""
        return field.name in self._found

    def __or__(self, others: Values) -> Values:
        return Values({**self._found, **others._found})

    def get(self, field: Field[T]) -> T | None:
        """Return the value, or the default of the field; None without either, and for null."""
        found: T | None = self._found.get(field.name, field.default)
        return found

    def __getitem__(self, field: Field[T]) -> T:
        """Return the value of a field that is required or has a default."""
        return cast(T, self.get(field))


def query(request: HttpRequest, fields: Sequence[Field[Any]]) -> Values:
    """Return the values of the query string. Raises Problem."""
    given: dict[str, Any] = dict(request.GET.items())
    for each in fields:
        if isinstance(each, Names):
            given[each.name] = request.GET.getlist(each.name)
        elif each.name in given and not each.is_text:
            given[each.name] = _from_text(given[each.name])
    return Values(dict(_checked(given, fields)))


def headers(request: HttpRequest, fields: Sequence[Field[Any]]) -> Values:
    """Return the values of headers. Raises Problem."""
    given = {each.name: value for each in fields if (value := request.headers.get(each.name)) is not None}
    return Values(dict(_checked(given, fields)))


def body(request: HttpRequest, fields: Sequence[Field[Any]], *, largest: int = LARGEST_BODY) -> Values:
    """Return the values of the body, a JSON object. An empty body is an object without fields. Raises Problem."""
    content = _read(request, largest)
    try:
        # Python would read NaN and Infinity, which other readers of JSON refuse.
        given = json.loads(content.decode(), parse_constant=_no_number) if content.strip() else {}
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        said = gettext("The body is not JSON in UTF-8: %(error)s.")
        raise Problem("malformed", said % {"error": str(error)[:200]}) from None
    if not isinstance(given, dict):
        raise Problem("malformed", gettext("The body is JSON, but not an object."))
    if is_too_deep(given, 2 * MAX_DEPTH):
        # Every Python can handle this depth; services check the depth of a field.
        raise _too_deep()
    return Values(dict(_checked(given, fields)))


def check_media_type(request: HttpRequest) -> None:
    """Refuse a body with another media type than JSON. Raises Problem."""
    if _has_body(request) and request.content_type != "application/json":
        raise Problem("unsupported-media-type", gettext("Send the body as application/json."))


def _checked(given: Mapping[str, Any], fields: Sequence[Field[Any]]) -> Iterator[tuple[str, Any]]:
    known = [each.name for each in fields]
    for name in given:
        if name not in known:
            said = gettext("There is no such field. The fields are: %(fields)s.")
            if not known:
                said = gettext("There is no such field. There are no fields.")
            raise invalid(str(name)[:50], said % {"fields": ", ".join(known)})
    for each in fields:
        if each.name in given:
            yield each.name, each.read(given[each.name])
        elif each.is_required:
            raise invalid(each.name, gettext("It is missing."))


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


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _too_large(largest: int) -> Problem:
    said = gettext("The body may have at most %(most)s bytes.")
    return Problem("too-large", said % {"most": grouped(largest)})


def _too_deep() -> Problem:
    said = gettext("The body cannot be read: it has more than %(most)s nested lists and objects.")
    return Problem("malformed", said % {"most": MAX_DEPTH})


def _from_text(value: str) -> Any:
    """Return the truth value or the number that a text in a query stands for; any other text as it is."""
    if value in ("true", "false"):
        return value == "true"
    if _INTEGER.fullmatch(value):
        return int(value)
    try:
        number = float(value) if len(value) <= _LONGEST_NUMBER and value.isascii() else math.nan
    except ValueError:
        return value
    return number if math.isfinite(number) else value
