"""
RedisUnavailableMiddleware: a page that needs Redis while Redis is away says so, with status 503.

Put it last in MIDDLEWARE: the last is the first to see an exception. The page needs neither Redis nor the
database, and tells a visitor nothing about the server; a client that prefers JSON gets problem details
(RFC 9457). It is logged as a warning, without a traceback: all is well again once Redis is back.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.log import log_response

from components.exceptions import RedisUnavailable

logger = logging.getLogger(__name__)

RETRY_AFTER = 10  # seconds: what a restarting server needs, and no herd of clients in between

_PROBLEM = "application/problem+json"


class RedisUnavailableMiddleware:
    """Turns RedisUnavailable, raised by a view or its template, into a plain answer."""

    sync_capable = True
    async_capable = True

    def __init__(
        self, get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]
    ) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, RedisUnavailable):
            return None
        response = _answer(request)
        add_never_cache_headers(response)
        patch_vary_headers(response, ["Accept"])
        mark_unavailable(request, response, error)
        return response


def mark_unavailable(request: HttpRequest, response: HttpResponse, error: RedisUnavailable) -> None:
    """Tell the client when to come back, and the log, as a warning, why it was sent away."""
    response["Retry-After"] = str(RETRY_AFTER)
    log_response(
        "%s %s: %s",
        request.method,
        request.path,
        error,
        response=response,
        request=request,
        logger=logger,
        level="warning",
    )


def _answer(request: HttpRequest) -> HttpResponse:
    if request.get_preferred_type(["text/html", _PROBLEM, "application/json"]) in (None, "text/html"):
        return HttpResponse(render_to_string("components/unavailable.html"), status=503)
    problem = {
        "type": "urn:components:redis-unavailable",
        "title": "Redis does not answer",
        "status": 503,
        "detail": f"Nothing is lost that was accepted. Try again in {RETRY_AFTER} seconds.",
    }
    return JsonResponse(problem, status=503, content_type=_PROBLEM)
