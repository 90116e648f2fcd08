"""
endpoint(get=…, post=…): one address of the API as an async view.

It finds out who asks, calls the handler of the method, and turns what that returns or raises into JSON. Nothing is
kept by caches on the way, and by a browser only what says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag
from django.views.decorators.csrf import csrf_exempt

from components.api.authentication import authenticate
from components.api.fields import check_media_type
from components.api.problems import RAISED, Problem, problem_of, response_to
from components.exceptions import RedisUnavailable
from components.middleware import mark_unavailable


@dataclass(frozen=True)
class Answer:
    """What a handler has to say."""

    #: None: nothing, with status 204.
    content: Mapping[str, Any] | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    #: For how many seconds the asker's own browser may keep it; None if it may not.
    max_age: int | None = None
    #: It is the same for everybody: caches on the way may keep it, too.
    is_public: bool = False


#: Called with the request, the id of who asks, and the parts of the address.
Handler = Callable[..., Awaitable[Answer]]
#: Says who asks, by his id; raises Problem.
Authentication = Callable[[HttpRequest], Awaitable[str]]
View = Callable[..., Coroutine[Any, Any, HttpResponse]]


def endpoint(**handlers: Handler) -> View:
    """The view of an address whose methods, in small letters, are *handlers*."""
    return endpoint_for(authenticate, handlers)


def endpoint_for(who: Authentication, handlers: Mapping[str, Handler]) -> View:
    """The same, where *who* says who asks."""
    methods = {name.upper(): handler for name, handler in handlers.items()}
    if "GET" in methods:
        methods["HEAD"] = methods["GET"]

    async def view(request: HttpRequest, **parts: str) -> HttpResponse:
        try:
            response = await _answer(request, who, methods, parts)
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

    return csrf_exempt(view)  # authenticate() checks it, where a session is what authenticates


async def _answer(
    request: HttpRequest, who: Authentication, methods: Mapping[str, Handler], parts: Mapping[str, str]
) -> HttpResponse:
    handler = methods.get(request.method or "")
    if handler is None:
        allowed = ", ".join(methods)
        raise Problem("method-not-allowed", f"Allowed are: {allowed}.", headers={"Allow": allowed})
    check_media_type(request)
    user = await who(request)
    answer = await handler(request, user, **parts)
    if answer.content is None:
        return HttpResponse(status=204, headers=dict(answer.headers))
    response = JsonResponse(answer.content, status=answer.status, headers=dict(answer.headers))
    return response if answer.max_age is None else _kept(request, response, answer)


def _kept(request: HttpRequest, response: HttpResponse, answer: Answer) -> HttpResponse:
    """*response* for a browser to keep; nothing but its headers if the browser has it already."""
    etag = quote_etag(hashlib.blake2b(response.content, digest_size=16).hexdigest())
    response["ETag"] = etag
    response["Cache-Control"] = f"{'public' if answer.is_public else 'private'}, max-age={answer.max_age}"
    told = get_conditional_response(request, etag=etag, response=response)
    return cast(HttpResponse, told)


async def nowhere(request: HttpRequest, user: str, path: str) -> Answer:
    """Whatever is no address of the API."""
    raise Problem("not-found", "The address leads nowhere.")
