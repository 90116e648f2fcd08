"""Tick off steps of the tour, and keep what a purchase has set in motion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from asgiref.sync import iscoroutinefunction
from django.core.signing import BadSignature
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from project.market.trace import Note, listening

from .steps import done_by

Handler = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]

#: A cookie, since the steps that were done outlast a log-out.
COOKIE = "tour"
TRACE = "tour_trace"


@sync_and_async_middleware
def tour(get_response: Handler) -> Handler:
    """Watch requests on behalf of the tour. It is the innermost middleware, so that the session is saved after it."""
    if iscoroutinefunction(get_response):

        async def watch_async(request: HttpRequest) -> HttpResponseBase:
            with listening() as notes:
                response: HttpResponseBase = await get_response(request)
            return _remember(request, response, notes)

        return watch_async

    def watch(request: HttpRequest) -> HttpResponseBase:
        with listening() as notes:
            response: HttpResponseBase = get_response(request)  # type: ignore[assignment]
        return _remember(request, response, notes)

    return watch


def done(request: HttpRequest) -> list[str]:
    """Return the names of the steps that the visitor has done."""
    try:
        found = request.get_signed_cookie(COOKIE, default="")
    except BadSignature:  # of another installation of the demo on this host
        found = ""
    return [name for name in (found or "").split(",") if name]


def _remember(request: HttpRequest, response: HttpResponseBase, notes: Sequence[Note]) -> HttpResponseBase:
    did = [each["what"] for each in notes]
    if "row" in did:
        request.session[TRACE] = list(notes)
    # Forms that were accepted redirect, and those that were not are shown again. The API answers 201.
    accepted = response.status_code in ((201, 302) if request.method == "POST" else (200, 302))
    if request.resolver_match and accepted:
        did.append(f"{request.method} {request.resolver_match.view_name}")
    before = done(request)
    if now := [name for name in done_by(*did) if name not in before]:
        response.set_signed_cookie(COOKIE, ",".join([*before, *now]), samesite="Lax", httponly=True)
    return response
