"""
An endpoint is one address of the API as an async view. For each method it has a handler. An Operation is a handler
together with its request and replies, by which requests are checked and openapi.py describes the API.

    class History(Request):
        limit: Annotated[int, Meta(ge=1, le=200)] = 50

    @operation("messages", {200: Reply("The page.", Messages)}, query=History, problems=["chat-not-found"])
    async def list_messages(request: HttpRequest, user: str, given: History, chat_id: str) -> Messages:
        "List a page of the history, oldest first."

    path("chats/<str:chat_id>/messages", endpoint(CHAT_ID, get=list_messages))

The endpoint authenticates the caller, calls the handler, and turns its answer or exception into JSON. No cache may
store an answer unless the handler allows it.
"""

import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from msgspec import json

from components.api import requests
from components.api.authentication import authenticate
from components.api.problems import RAISED, Problem, problem_of, response_to
from components.api.requests import Part
from components.api.shapes import Request
from components.exceptions import RedisUnavailable
from components.views import mark_unavailable, without_transaction


@dataclass(frozen=True)
class Answer:
    """What a handler returns that says more than the body of a status 200, or than the None of a 204."""

    #: The body; None for an answer without one, with status 204.
    content: Mapping[str, Any] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    #: For how many seconds the caller's browser may keep the answer; None if it may not.
    max_age: int | None = None
    #: Whether the answer is the same for everybody, so that shared caches may keep it, too.
    is_public: bool = False


#: A function that is called with the request, the caller's id, and the parts of the address by name. It returns an
#: Answer, or only its content.
Handler = Callable[..., Awaitable[Any]]
#: A function that returns the caller's id. Raises Problem.
Authentication = Callable[[HttpRequest], Awaitable[str]]
View = Callable[..., Coroutine[Any, Any, HttpResponse]]


@dataclass(frozen=True)
class Reply:
    """An answer of an operation, for the description of the API."""

    about: str
    #: The TypedDict of the body; None for an answer without a body.
    shape: type | None = None
    #: The name of a header in the answer.
    header: str = ""


@dataclass(frozen=True)
class Operation:
    """A handler that is called with the request's query or body after the id of the caller."""

    handler: Handler
    tag: str
    #: The replies, by status.
    replies: Mapping[int, Reply]
    #: What the query may contain; None if the query is ignored. It has a query, a body or neither.
    query: type[Request] | None = None
    #: What the body may contain; None if there is no body.
    body: type[Request] | None = None
    #: The largest body, in bytes.
    largest: int = requests.LARGEST_BODY
    #: Whether the handler gets the idempotency key, or None, as `key`.
    is_repeatable: bool = False
    #: The types of problems that can occur, besides those that follow from the request and the method.
    problems: Sequence[str] = ()

    async def __call__(self, request: HttpRequest, user: str, **parts: Any) -> Any:
        given: list[Request] = []
        if self.query is not None:
            given.append(requests.query(request, self.query))
        if self.body is not None:
            given.append(requests.body(request, self.body, largest=self.largest))
        if self.is_repeatable:
            parts["key"] = requests.key_of(request)
        return await self.handler(request, user, *given, **parts)


def operation(tag: str, replies: Mapping[int, Reply], **more: Any) -> Callable[[Handler], Operation]:
    """Make an Operation of a handler, which is described by its name and its docstring."""
    return lambda handler: Operation(handler, tag, replies, **more)


@dataclass(frozen=True)
class Endpoint:
    """An address: its described parts, and a handler for each method."""

    parts: Sequence[Part]
    handlers: Mapping[str, Handler]
    who: Authentication

    async def answer(self, request: HttpRequest, parts: dict[str, Any]) -> HttpResponse:
        handler = self.handlers.get(request.method or "")
        if handler is None:
            allowed = ", ".join(self.handlers)
            raise Problem(
                "method-not-allowed",
                gettext("The address takes: %(methods)s.") % {"methods": allowed},
                headers={"Allow": allowed},
            )
        requests.check_media_type(request)
        user = await self.who(request)
        parts |= {part.name: part.read(parts[part.name]) for part in self.parts}
        told = await handler(request, user, **parts)
        answer = told if isinstance(told, Answer) else Answer(told)
        headers = dict(answer.headers)
        if answer.content is None:
            return HttpResponse(status=204, headers=headers)
        response = HttpResponse(
            json.encode(answer.content), "application/json", answer.status, headers=headers
        )
        return response if answer.max_age is None else _kept(request, response, answer)


def endpoint(*parts: Part, who: Authentication = authenticate, **handlers: Handler) -> View:
    """Return the view of an address with these *parts*, whose methods, in small letters, are *handlers*."""
    methods = {name.upper(): handler for name, handler in handlers.items()}
    if "GET" in methods:
        methods["HEAD"] = methods["GET"]
    made = Endpoint(parts, methods, who)

    async def view(request: HttpRequest, **given: str) -> HttpResponse:
        try:
            response = await made.answer(request, given)
        except Problem as problem:
            response = response_to(problem)
        except RAISED as error:
            response = response_to(problem_of(error))
            if isinstance(error, RedisUnavailable):
                mark_unavailable(request, response, error)
        response.headers.setdefault("Cache-Control", "no-store")
        if not response["Cache-Control"].startswith("public"):
            patch_vary_headers(response, ["Authorization", "Cookie"])
        return response

    cast(Any, view).endpoint = made
    # authenticate() checks the CSRF token if the request has a session.
    return csrf_exempt(without_transaction(view))


def _kept(request: HttpRequest, response: HttpResponse, answer: Answer) -> HttpResponse:
    """Return *response* for a browser to keep, or 304 if the browser has it already."""
    etag = quote_etag(hashlib.blake2b(response.content, digest_size=16).hexdigest())
    response["ETag"] = etag
    response["Cache-Control"] = f"{'public' if answer.is_public else 'private'}, max-age={answer.max_age}"
    told = get_conditional_response(request, etag=etag, response=response)
    return cast(HttpResponse, told)


async def nowhere(request: HttpRequest, user: str, path: str) -> Answer:
    """Refuse a request to an address that the API does not have."""
    raise Problem("not-found", gettext("The API has no such address."))
