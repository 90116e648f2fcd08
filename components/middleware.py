"""
RedisUnavailableMiddleware answers 503 if a page needs Redis while Redis is away. CountRequestsMiddleware counts
requests, their statuses and their times for each view.

Put RedisUnavailableMiddleware last in MIDDLEWARE, since the last middleware sees an exception first. Its page is the
template components/unavailable.html, which a project may replace by one with its own navigation. This app's template
needs neither Redis nor the database, and reveals nothing about the server. A client that prefers JSON gets problem
details (RFC 9457). The log gets a warning without a traceback, since nothing has to be repaired after the outage.

Put CountRequestsMiddleware first, so that it times all others. It counts in memory, and sends the counts once a
second.
"""

import logging
from collections.abc import Awaitable, Callable
from time import perf_counter_ns
from typing import TypeAlias

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.translation import gettext, ngettext

from components.conf import conf, warn_unless_installed
from components.exceptions import RedisUnavailable
from components.services.counters import beside, count, measure, prepare
from components.views import RETRY_AFTER
from components.views import mark_unavailable as mark_unavailable  # for views of projects

logger = logging.getLogger(__name__)

_View: TypeAlias = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]

_TEMPLATE = "components/unavailable.html"
_PROBLEM = "application/problem+json"

# how many views a process counts by name; requests to further views are counted as "others"
_MAX_VIEWS = 1_000
_MAX_NAME = 400  # characters of a view's name; the name of a counter may have 500
_REQUESTS = "requests"
_BROKEN_OFF = 499  # the client has gone away, or the server has ended the request: nobody was answered


class _Middleware:
    """For views of both kinds: asynchronous ones are not put into a thread."""

    sync_capable = async_capable = True

    def __init__(self, get_response: _View) -> None:
        warn_unless_installed()
        self.get_response, self._is_async = get_response, iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        return self.get_response(request)


class RedisUnavailableMiddleware(_Middleware):
    """Turns RedisUnavailable, raised by a view or its template, into a response with status 503."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, RedisUnavailable):
            return None
        response = _answer(request)
        add_never_cache_headers(response)
        patch_vary_headers(response, ["Accept"])
        mark_unavailable(request, response, error)
        return response


def _answer(request: HttpRequest) -> HttpResponse:
    if request.get_preferred_type(["text/html", _PROBLEM, "application/json"]) in (None, "text/html"):
        return HttpResponse(_page(request), status=503)
    detail = ngettext(
        "Everything that was accepted is safe. Try again in %(count)s second.",
        "Everything that was accepted is safe. Try again in %(count)s seconds.",
        RETRY_AFTER,
    )
    problem = {
        "type": "urn:components:redis-unavailable",
        "title": gettext("Redis does not answer"),
        "status": 503,
        "detail": detail % {"count": RETRY_AFTER},
    }
    return JsonResponse(problem, status=503, content_type=_PROBLEM)


def _page(request: HttpRequest) -> str:
    """Return the page with the context of the request, or without it if a context processor needs Redis, too."""
    try:
        return render_to_string(_TEMPLATE, request=request)
    except Exception:
        logger.warning("%s could not be rendered with the context of the request.", _TEMPLATE, exc_info=True)
        return render_to_string(_TEMPLATE)


class CountRequestsMiddleware(_Middleware):
    """
    Counts requests, in total and for each view: "requests:<view>", "requests-us:<view>" (the microseconds until the
    view returned, with a histogram) and "requests-2xx:<view>" to "requests-5xx:<view>" (by status).

    A view is counted under its name in the URLconf; requests that no view answered are counted as "404" or
    "middleware". A request that is broken off, by its client or its server, counts among "requests-4xx".
    COMPONENTS["COUNT_REQUESTS"] turns it off.
    """

    def __init__(self, get_response: _View) -> None:
        if not conf().count_requests:
            raise MiddlewareNotUsed('COMPONENTS["COUNT_REQUESTS"] is False.')
        super().__init__(get_response)
        self._views: set[str] = set()
        self._names: dict[tuple[str, int], list[tuple[str, str, str]]] = {}
        prepare()

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._is_async:
            return self._acall(request)
        began, status = perf_counter_ns(), _BROKEN_OFF
        try:
            response = self.get_response(request)
            assert isinstance(response, HttpResponseBase)
            status = response.status_code
            return response
        finally:
            self._count(request, status, began)

    async def _acall(self, request: HttpRequest) -> HttpResponseBase:
        began, status = perf_counter_ns(), _BROKEN_OFF
        try:
            response = self.get_response(request)
            assert isinstance(response, Awaitable)
            answered: HttpResponseBase = await response
            status = answered.status_code
            return answered
        finally:
            self._count(request, status, began)

    def _count(self, request: HttpRequest, status: int, began: int) -> None:
        took = (perf_counter_ns() - began) // 1_000
        match = request.resolver_match
        view = match.view_name if match else "404" if status == 404 else "middleware"
        names = self._names.get((view, status // 100)) or self._names_of(view, status // 100)
        for requests, microseconds, of_status in names:
            count(requests)
            measure(microseconds, took)
            count(of_status)

    def _names_of(self, view: str, kind: int) -> list[tuple[str, str, str]]:
        if view not in self._views and len(self._views) >= _MAX_VIEWS:
            view = "others"
        self._views.add(view)
        parts = [_REQUESTS, f"{_REQUESTS}:{view[:_MAX_NAME]}"]
        names = [(part, beside(part, "us"), beside(part, f"{kind}xx")) for part in parts]
        return self._names.setdefault((view, kind), names)
