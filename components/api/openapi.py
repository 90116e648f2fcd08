"""
The OpenAPI description of the HTTP API, which `manage.py openapi` prints.

An operation is described by its handler's name and docstring, and by its fields, replies and problems.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from itertools import groupby
from pathlib import Path
from typing import Any

from django.urls import URLPattern, URLResolver
from django.utils.translation import override

from components.api.endpoints import Endpoint, Operation, Reply
from components.api.fields import IDEMPOTENCY_KEY, Field
from components.api.problems import CONTENT_TYPE, KINDS
from components.api.shapes import schema_of
from components.api.urls import urlpatterns

FILE = Path(__file__).parents[1] / "static" / "components" / "openapi.json"

_WIDTH = 110  # characters of a line
_INFO = {
    "title": "components",
    "version": "1",
    "summary": "Group chats and mailboxes that lose nothing.",
    "description": "Instants are ISO 8601 in UTC; ids are opaque text. A field that is not described is refused. "
    "With a session, a request that changes something needs the header X-CSRFToken.",
}
_SECURITY = {
    "session": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": 'If the project has set COMPONENTS["API_AUTHENTICATION"].',
    },
}
_PROBLEM = {
    "type": "object",
    "properties": {
        "type": {
            "type": "string",
            "format": "uri-reference",
            "description": "Stays the same for a type of problem. Its address explains it.",
        },
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "field": {"type": "string", "description": "The field that is wrong."},
    },
    "required": ["type", "title", "status", "detail"],
    "description": "Problem details (RFC 9457).",
}
_HEADERS: dict[str, dict[str, Any]] = {
    "Location": {"schema": {"type": "string", "format": "uri-reference"}},
    "Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 0}},
    "ETag": {"schema": {"type": "string"}},
}


def text() -> str:
    """Return the description as JSON, which openapi.json holds."""
    return _json(description()) + "\n"


@override(None)  # it is English throughout, as the titles of problems are then
def description() -> dict[str, Any]:
    found = dict(_endpoints(urlpatterns))
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    parameters: dict[str, Any] = {}
    paths = {path: _path(endpoint, parameters, schemas) for path, endpoint in found.items()}
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "/api"}],
        "security": [{name: []} for name in _SECURITY],
        "tags": [
            {"name": tag}
            for tag in dict.fromkeys(each.tag for end in found.values() for _, each in _operations(end))
        ],
        "paths": paths,
        "components": {
            "securitySchemes": _SECURITY,
            "parameters": parameters,
            "responses": dict(_problems()),
            "schemas": schemas,
        },
    }


def _endpoints(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[tuple[str, Endpoint]]:
    """Yield the addresses with operations, and their endpoints."""
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from _endpoints(each.url_patterns)
            continue
        endpoint = getattr(each.callback, "endpoint", None)
        if endpoint is not None and any(_operations(endpoint)):
            yield "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(each.pattern)), endpoint


def _operations(endpoint: Endpoint) -> Iterator[tuple[str, Operation]]:
    for method, handler in endpoint.handlers.items():
        if isinstance(handler, Operation) and method != "HEAD":
            yield method.lower(), handler


def _path(endpoint: Endpoint, parameters: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if endpoint.parts:
        told["parameters"] = [_shared(_parameter(part, "path"), parameters) for part in endpoint.parts]
    for method, each in _operations(endpoint):
        told[method] = _operation(method, each, parameters, schemas)
    return told


def _operation(
    method: str, operation: Operation, parameters: dict[str, Any], schemas: dict[str, Any]
) -> dict[str, Any]:
    first, *names = operation.handler.__name__.split("_")
    summary, _, more = cleandoc(operation.handler.__doc__ or "").partition("\n\n")
    told: dict[str, Any] = {
        "operationId": first + "".join(name.title() for name in names),
        "tags": [operation.tag],
        "summary": summary.rstrip("."),
    }
    if more:
        told["description"] = " ".join(more.split())
    taken = [_parameter(each, "query") for each in operation.query or ()]
    taken += [_shared(_parameter(each, "header"), parameters) for each in operation.headers]
    if taken:
        told["parameters"] = taken
    if operation.body is not None:
        told["requestBody"] = _body(operation)
    replies = {str(status): _reply(each, schemas) for status, each in operation.replies.items()}
    if any(each.header == "ETag" for each in operation.replies.values()):
        replies["304"] = {"description": "Nothing has changed since the answer with this ETag."}
    told["responses"] = replies | dict(_refusals(method, operation))
    return told


def _parameter(field: Field[Any], place: str) -> dict[str, Any]:
    told = {
        "name": field.name,
        "in": place,
        "schema": _with_default(field),
        "required": field.is_required or place == "path",
    }
    return {**told, "description": field.about} if field.about else told


def _shared(parameter: dict[str, Any], parameters: dict[str, Any]) -> dict[str, str]:
    """Put *parameter* among those that operations refer to, and return the reference."""
    name = parameter["name"].lower().replace("-", "_")
    assert parameters.setdefault(name, parameter) == parameter, f"{name} is described in two ways."
    return {"$ref": f"#/components/parameters/{name}"}


def _with_default(field: Field[Any]) -> dict[str, Any]:
    return field.schema() | ({} if field.default in (None, "") else {"default": field.default})


def _body(operation: Operation) -> dict[str, Any]:
    fields = operation.body or ()
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            field.name: _with_default(field) | ({"description": field.about} if field.about else {})
            for field in fields
        },
    }
    if required := [field.name for field in fields if field.is_required]:
        schema["required"] = required
    schema |= {"additionalProperties": False, **operation.also}
    content = {"application/json": {"schema": schema}}
    return {"required": bool(required or operation.also), "content": content}


def _reply(reply: Reply, schemas: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"description": reply.about}
    if reply.shape is not None:
        told["content"] = {"application/json": {"schema": schema_of(reply.shape, schemas)}}
    if reply.header:
        told["headers"] = {reply.header: _HEADERS[reply.header]}
    return told


def problems_of(method: str, operation: Operation) -> set[str]:
    """Return the types of problems that a request with this method, in small letters, can be refused with."""
    found = {"not-authenticated", "redis-unavailable", *operation.problems}
    if method != "get":
        found.add("csrf")
    if operation.body is not None:
        found |= {"malformed", "too-large", "unsupported-media-type", "invalid-value"}
    if operation.query is not None:
        found |= {"malformed", "invalid-value"}
    if IDEMPOTENCY_KEY in operation.headers:
        found.add("idempotency-key-reused")
    return found


def _refusals(method: str, operation: Operation) -> Iterator[tuple[str, dict[str, str]]]:
    found = problems_of(method, operation)
    for status, names in groupby(
        (name for name in KINDS if name in found), key=lambda name: KINDS[name].status
    ):
        reference = f"#/components/responses/Problem{status}"
        yield str(status), {"$ref": reference, "description": f"Types: {', '.join(names)}."}


def _problems() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield an answer for each status that a problem of an operation can have."""
    for status, names in groupby(KINDS, key=lambda name: KINDS[name].status):
        if status != 405:
            told: dict[str, Any] = {
                "description": " ".join(f"{name}: {KINDS[name].title}." for name in names),
                "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }
            if status in (429, 503):
                told["headers"] = {"Retry-After": _HEADERS["Retry-After"]}
            yield f"Problem{status}", told


def _json(value: Any, indent: str = "") -> str:
    """Return *value* as JSON, with what fits into a line on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, Mapping | list):
        return line
    inner = f"{indent}  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _json(each, inner) for each in value) + f"\n{indent}]"
    pairs = (f"{inner}{json.dumps(name)}: {_json(each, inner)}" for name, each in value.items())
    return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"
