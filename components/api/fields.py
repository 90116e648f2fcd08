"""
What a request says: its body, query and headers, read with limits and checked field by field.

Nothing is asked of Redis or the database before all of it is right. A body is read up to its limit and no further.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from django.http import HttpRequest, UnreadablePostError

from components.api.problems import Problem
from components.kit.stored import MAX_DEPTH, is_too_deep
from components.kit.values import MAX_NAME

LARGEST_BODY = 65_536  # bytes
MOST_PEOPLE = 1_000  # in one request: what a chat takes by default
LONGEST_KEY = 64  # characters
_LARGEST = 2**53 - 1  # what JSON carries everywhere
_MOST_DIGITS = 16
_LONGEST_NUMBER = 32  # characters, as a fraction is written out
_KEY = re.compile(rf"[\x21-\x7e]{{1,{LONGEST_KEY}}}")
_INTEGER = re.compile(r"-?[0-9]{1,17}")
_MISSING: Any = object()
_TOO_DEEP = f"it is nested too deeply, with more than {MAX_DEPTH} lists and objects inside of each other."


def invalid(name: str, detail: str) -> Problem:
    """The value of the field *name* is wrong."""
    return Problem("invalid-value", f"{name}: {detail}", {"field": name})


class Values:
    """Fields by name, taken one by one in the type that they must have. Raises Problem."""

    def __init__(self, given: Mapping[str, Any], known: tuple[str, ...], *, is_query: bool = False) -> None:
        self._given = given
        #: All is text then: what looks like a number or a truth value is one, where one is asked for.
        self._is_query = is_query
        for name in given:
            if name not in known:
                raise invalid(str(name)[:50], f"It is not known; known are: {', '.join(known) or 'none'}.")

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def raw(self, name: str, default: Any = None) -> Any:
        return self._given.get(name, default)

    def text(self, name: str, default: str = _MISSING, *, longest: int = LARGEST_BODY) -> str:
        value = self._get(name, default, converts=False)
        if not isinstance(value, str) or len(value) > longest or not _is_unicode(value):
            self._refuse(name, f"It must be text of at most {longest:,} characters.")
        return value

    def integer(
        self, name: str, default: int | None = _MISSING, *, least: int = 0, most: int = _LARGEST
    ) -> Any:
        value = self._get(name, default)
        if name not in self._given:
            return value
        if isinstance(value, float) and value.is_integer():  # 1.0 is a whole number for JSON
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self._refuse(name, f"It must be a whole number from {least:,} to {most:,}.")
        return value

    def number(self, name: str, default: float = _MISSING, *, most: float) -> float:
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            self._refuse(name, f"It must be a number from 0 to {most:,.0f}.")
        return value

    def boolean(self, name: str, default: bool = _MISSING) -> bool:
        value = self._get(name, default)
        if not isinstance(value, bool):
            self._refuse(name, "It must be true or false.")
        return value

    def people(self, name: str, default: list[str] = _MISSING) -> list[str]:
        """Ids of persons, each once, in their order."""
        value = self._get(name, default)
        if not isinstance(value, list) or len(value) > MOST_PEOPLE:
            self._refuse(name, f"It must be a list of at most {MOST_PEOPLE:,} ids.")
        if not all(
            isinstance(each, str) and 1 <= len(each) <= MAX_NAME and _is_unicode(each) for each in value
        ):
            self._refuse(name, f"Each id must be text of 1 to {MAX_NAME} characters.")
        return list(dict.fromkeys(value))

    def _get(self, name: str, default: Any, *, converts: bool = True) -> Any:
        value = self._given.get(name, default)
        if value is _MISSING:
            self._refuse(name, "It is missing.")
        return _from_text(value) if converts and self._is_query and isinstance(value, str) else value

    def _refuse(self, name: str, detail: str) -> NoReturn:
        raise invalid(name, detail)


def query(request: HttpRequest, *known: str) -> Values:
    """The query string."""
    return Values(dict(request.GET.items()), known, is_query=True)


def texts(request: HttpRequest, name: str, *, most: int) -> list[str]:
    """All values of the query's *name*, which is its only field."""
    Values(dict.fromkeys(request.GET), (name,))
    found = request.GET.getlist(name)
    if not 1 <= len(found) <= most or any(len(each) > MAX_NAME for each in found):
        raise invalid(name, f"Give it 1 to {most} times, with at most {MAX_NAME} characters each.")
    return found


def check_media_type(request: HttpRequest) -> None:
    """Refuse a body that says that it is something else."""
    if _has_body(request) and request.content_type != "application/json":
        raise Problem("unsupported-media-type", "Send the body as application/json.")


def body(request: HttpRequest, *known: str, largest: int = LARGEST_BODY) -> Values:
    """The body, a JSON object; an empty one is an object without fields."""
    content = _read(request, largest)
    try:
        # The numbers that JSON does not know would be stored, and read by nobody.
        given = json.loads(content.decode(), parse_constant=_no_number) if content.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Problem("malformed", f"The body is no JSON in UTF-8: {_reason(error)}") from None
    if not isinstance(given, dict):
        raise Problem("malformed", "The body is JSON, but no object.")
    if is_too_deep(
        given, 2 * MAX_DEPTH
    ):  # far below where any Python gives up; services know what a field may have
        raise Problem("malformed", f"The body is no JSON in UTF-8: {_TOO_DEEP}")
    return Values(given, known)


def idempotency_key(request: HttpRequest) -> str | None:
    """By which a repeated request is recognised; None if it has none."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise invalid("Idempotency-Key", f"It must be 1 to {LONGEST_KEY} ASCII characters without blanks.")
    return key


def number(text: str) -> int:
    """The number of a message in an address. Raises Problem."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) <= _LARGEST):
        raise Problem("message-not-found", "The number of a message is a whole number.")
    return int(text)


def _has_body(request: HttpRequest) -> bool:
    length = request.META.get("CONTENT_LENGTH") or "0"
    # The server of runserver makes up text/plain for a request that says nothing of a type.
    has_type = request.content_type not in ("", "text/plain")
    return length != "0" or has_type or "HTTP_TRANSFER_ENCODING" in request.META


def _read(request: HttpRequest, largest: int) -> bytes:
    length = request.META.get("CONTENT_LENGTH") or "0"
    too_large = Problem("too-large", f"The body may have {largest:,} bytes.")
    if length.isdecimal() and len(length) < 20 and int(length) > largest:
        raise too_large
    try:
        content: bytes = request.read(largest + 1)
    except UnreadablePostError:
        raise Problem("malformed", "The body ended too early.") from None
    if len(content) > largest:
        raise too_large
    return content


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _reason(error: Exception) -> str:
    return _TOO_DEEP if isinstance(error, RecursionError) else f"{error}."[:200]


def _from_text(value: str) -> Any:
    if value in ("true", "false"):
        return value == "true"
    if _INTEGER.fullmatch(value):
        return int(value)
    try:
        number = float(value) if len(value) <= _LONGEST_NUMBER and value.isascii() else math.nan
    except ValueError:
        return value
    return number if math.isfinite(number) else value


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text) if not text.isascii() else True
