"""The tour's pages and buttons. What changes something takes POST only."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from components.exceptions import RedisUnavailable
from project.market import demo

from . import tracing
from .middleware import COOKIE
from .shows import SHOWS, StillOn, begin


@require_safe
@never_cache
def shows(request: HttpRequest) -> HttpResponse:
    """Show the whole tour as a page of its own."""
    return render(request, "tour/shows.html")


@require_safe
@never_cache
def trace(request: HttpRequest) -> HttpResponse:
    """Show what the visitor's last purchase has set in motion; the script replaces that part of the page by this."""
    return render(request, "tour/_trace.html", {"trace": tracing.Trace.of(request)})


@require_safe
@never_cache
def mails(request: HttpRequest) -> HttpResponse:
    """List the last mails."""
    return render(request, "tour/mails.html", {"mails": tracing.mails()})


@require_POST
def log_in(request: HttpRequest) -> HttpResponse:
    """Log in as one of the demo's people, without a password."""
    name = request.POST.get("name", "")
    if name not in (*demo.PLAYERS, "admin"):
        raise Http404(f"The demo has no log-in {name!r}.")
    login(request, get_object_or_404(User, username=name), "django.contrib.auth.backends.ModelBackend")
    messages.success(request, f"You are logged in as {name}.")
    return _back(request)


@require_POST
def show(request: HttpRequest, name: str) -> HttpResponse:
    """Begin a show."""
    if name not in SHOWS:
        raise Http404(f"The tour has no button {name!r}.")
    try:
        messages.success(request, begin(SHOWS[name]))
    except StillOn as error:
        messages.warning(request, str(error))
        return _back(request, status=303)
    except RedisUnavailable as error:
        messages.error(request, f"Nothing was started: {error}")
        return _back(request, status=303)
    return _back(request)


@require_POST
def start_again(request: HttpRequest) -> HttpResponse:
    """Forget which steps were done."""
    response = _back(request)
    response.delete_cookie(COOKIE, samesite="Lax")
    return response


def _back(request: HttpRequest, *, status: int = 302) -> HttpResponse:
    page = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(page, {request.get_host()}, require_https=request.is_secure())
    response = redirect(page if ours else reverse("market:browse"))
    response.status_code = status
    return response
