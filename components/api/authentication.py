"""
Authenticate a request by its session or, if the project has a hook for tokens, by its bearer token.

With a session, a request that changes something needs the CSRF token, as in any other view. A request with a bearer
token does not, because no browser sends such a token by itself.
"""

from functools import lru_cache
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.module_loading import import_string
from django.utils.translation import gettext

from components.api.problems import Problem
from components.conf import conf

_SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> HttpResponse:
        raise Problem("csrf", reason)


def _view(request: HttpRequest) -> HttpResponse:
    """Stand for a view that is not exempt from the check. Nothing calls it."""
    raise AssertionError


_csrf = _CsrfCheck(_view)
_hook = lru_cache(maxsize=1)(import_string)


async def authenticate(request: HttpRequest) -> str:
    """Return the id of the caller. Raises Problem."""
    path = conf().api_authentication
    scheme, _, _token = request.headers.get("Authorization", "").partition(" ")
    if path is not None and scheme.lower() == "bearer":
        hook = _hook(path)
        user = await (hook if iscoroutinefunction(hook) else sync_to_async(hook))(request)
    else:
        user = await request.auser()
        if user.is_authenticated and request.method not in _SAFE:
            await sync_to_async(_check_csrf)(request)
    if user is None or not user.is_authenticated:
        challenge = "Bearer" if path is not None else "Session"
        said = gettext("There is no valid session or bearer token.")
        raise Problem("not-authenticated", said, headers={"WWW-Authenticate": challenge})
    return str(user.pk)


async def authenticate_again(request: HttpRequest) -> str:
    """Authenticate a request that has waited, by the session and the person as they are now. Raises Problem."""
    if (session := getattr(request, "session", None)) is not None:
        request.session = type(session)(session.session_key)  # which has read nothing yet
    vars(request).pop("_acached_user", None)  # by which Django's auser() remembers
    return await authenticate(request)


def _check_csrf(request: HttpRequest) -> None:
    _csrf.process_request(request)
    _csrf.process_view(request, cast(Any, _view), (), {})
