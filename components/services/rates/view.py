"""
limit_rate: a rate limit around a view. A request that exceeds it is answered with status 429 and Retry-After.

    @limit_rate(RateLimit("search", "30/m"))
    def search(request): ...                               # or async def
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse

from components.exceptions import TooFast
from components.services.rates.limit import RateLimit

_V = TypeVar("_V", bound=Callable[..., Any])


def caller(request: HttpRequest) -> str:
    """Return the id of the user, or the address of somebody who is not logged in: REMOTE_ADDR."""
    user = getattr(request, "user", None)
    return f"user {user.pk}" if user and user.is_authenticated else request.META.get("REMOTE_ADDR", "")


def limit_rate(limit: RateLimit, *, by: Callable[[HttpRequest], object] = caller) -> Callable[[_V], _V]:
    """
    Count the requests of a view, for each caller apart, or by what *by* returns for a request.

    Behind a proxy, all visitors have its address, unless the server replaces it: then let *by* read what the proxy
    says. Without Redis, the view raises RedisUnavailable.
    """

    def decorate(view: _V) -> _V:
        @wraps(view)
        def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            try:
                limit.acquire(by(request))
            except TooFast as error:
                return _refused(error)
            return view(request, *args, **kwargs)

        @wraps(view)
        async def alimited(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if by is caller and hasattr(request, "auser"):
                request.user = await request.auser()
            try:
                await limit.aacquire(by(request))
            except TooFast as error:
                return _refused(error)
            return await view(request, *args, **kwargs)

        return alimited if iscoroutinefunction(view) else limited  # type: ignore[return-value]

    return decorate


def _refused(error: TooFast) -> HttpResponse:
    headers = {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    return HttpResponse(f"{error}\n", status=429, headers=headers, content_type="text/plain; charset=utf-8")
