"""
The OpenAPI description of the HTTP API, which `manage.py openapi` prints.

An operation is described by its handler's name and docstring, and by its request, replies and problems.
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
from msgspec import json as msgspec_json
from msgspec import structs

from components.api.endpoints import Endpoint, Operation, Reply
from components.api.problems import CONTENT_TYPE, KINDS
from components.api.requests import KEY_PARAMETER
from components.api.shapes import TEXT_OR_DATA, Request, TextOrData
from components.api.urls import urlpatterns

FILE = Path(__file__).parents[1] / "static" / "components" / "openapi.json"

_REFERENCE = "#/components/schemas/{name}"
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
    operations = [each for endpoint in found.values() for _, each in _operations(endpoint)]
    schemas = {"Problem": _PROBLEM, **_schemas(operations)}
    parameters: dict[str, Any] = {}
    paths = {path: _path(endpoint, parameters) for path, endpoint in found.items()}
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "/api"}],
        "security": [{name: []} for name in _SECURITY],
        "tags": [{"name": tag} for tag in dict.fromkeys(each.tag for each in operations)],
        "paths": paths,
        "components": {
            "securitySchemes": _SECURITY,
            "parameters": parameters,
            "responses": dict(_problems()),
            "schemas": schemas,
        },
    }


def _endpoints(patterns: Iterable[URLPattern | URLResolver]) -> Iterator[tuple[str, Endpoint]]:
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


def _schemas(operations: Iterable[Operation]) -> dict[str, Any]:
    kinds = [
        kind for each in operations for kind in (each.body, *(reply.shape for reply in each.replies.values()))
    ]
    named = msgspec_json.schema_components(list(filter(None, kinds)), ref_template=_REFERENCE)[1]
    for kind in kinds:
        if kind is not None and issubclass(kind, TextOrData):
            named[kind.__name__] |= TEXT_OR_DATA
    return named


def _path(endpoint: Endpoint, parameters: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if endpoint.parts:
        told["parameters"] = [
            _shared({"name": part.name, "in": "path", "schema": part.schema, "required": True}, parameters)
            for part in endpoint.parts
        ]
    for method, each in _operations(endpoint):
        told[method] = _operation(method, each, parameters)
    return told


def _operation(method: str, operation: Operation, parameters: dict[str, Any]) -> dict[str, Any]:
    first, *names = operation.handler.__name__.split("_")
    summary, _, more = cleandoc(operation.handler.__doc__ or "").partition("\n\n")
    told: dict[str, Any] = {
        "operationId": first + "".join(name.title() for name in names),
        "tags": [operation.tag],
        "summary": summary.rstrip("."),
    }
    if more:
        told["description"] = " ".join(more.split())
    taken = [] if operation.query is None else list(_parameters(operation.query))
    if operation.is_repeatable:
        taken.append(_shared(KEY_PARAMETER, parameters))
    if taken:
        told["parameters"] = taken
    if operation.body is not None:
        told["requestBody"] = _body(operation.body)
    replies = {str(status): _reply(each) for status, each in operation.replies.items()}
    if any(each.header == "ETag" for each in operation.replies.values()):
        replies["304"] = {"description": "Nothing has changed since the answer with this ETag."}
    told["responses"] = replies | dict(_refusals(method, operation))
    return told


def _parameters(query: type[Request]) -> Iterator[dict[str, Any]]:
    schema = msgspec_json.schema(query)["$defs"][query.__name__]
    for name, bounds in schema["properties"].items():
        # A query has no null: what is not given is not there.
        bounds = {**bounds.pop("anyOf", [{}])[0], **bounds}
        about = bounds.pop("description", None)
        if bounds.get("default", "") in (None, ""):
            bounds.pop("default", None)
        told = {"name": name, "in": "query", "schema": bounds, "required": name in schema["required"]}
        yield {**told, "description": about} if about else told


def _shared(parameter: dict[str, Any], parameters: dict[str, Any]) -> dict[str, str]:
    name = parameter["name"].lower().replace("-", "_")
    assert parameters.setdefault(name, parameter) == parameter, f"{name} is described in two ways."
    return {"$ref": f"#/components/parameters/{name}"}


def _body(kind: type[Request]) -> dict[str, Any]:
    is_needed = issubclass(kind, TextOrData) or any(each.required for each in structs.fields(kind))
    return {"required": is_needed, "content": _content(kind)}


def _reply(reply: Reply) -> dict[str, Any]:
    told: dict[str, Any] = {"description": reply.about}
    if reply.shape is not None:
        told["content"] = _content(reply.shape)
    if reply.header:
        told["headers"] = {reply.header: _HEADERS[reply.header]}
    return told


def _content(kind: type) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(name=kind.__name__)}}}


def problems_of(method: str, operation: Operation) -> set[str]:
    """Return the types of problems that a request with this method, in small letters, can be refused with."""
    found = {"not-authenticated", "redis-unavailable", *operation.problems}
    if method != "get":
        found.add("csrf")
    if operation.body is not None:
        found |= {"malformed", "too-large", "unsupported-media-type", "invalid-value"}
    if operation.query is not None:
        found |= {"malformed", "invalid-value"}
    if operation.is_repeatable:
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
