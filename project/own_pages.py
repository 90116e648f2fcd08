"""What the demo's own pages have in common: their texts exist only in English, and they show who is logged in."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import add_never_cache_headers
from django.utils.deprecation import MiddlewareMixin

#: The apps whose texts are not translated. The control room and the chat page speak the visitor's language.
OWN = {"guilds", "market", "players", "tour"}


class OwnPages(MiddlewareMixin):
    """
    Switches to English for the demo's own pages, so that Django's dates and errors in them are English too, and keeps
    them out of caches, a browser's included. Put it after LocaleMiddleware.
    """

    def process_view(self, request: HttpRequest, view: object, args: Any, kwargs: Any) -> None:
        if _is_own(request):
            translation.activate("en")

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if _is_own(request) and not response.has_header("Cache-Control"):
            add_never_cache_headers(response)
        return response


def _is_own(request: HttpRequest) -> bool:
    return bool(request.resolver_match and OWN.intersection(request.resolver_match.app_names))
