"""The language of the demo's own pages, whose texts exist only in English."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin

#: The apps whose texts are not translated. The control room and the chat page speak the visitor's language.
OWN = {"guilds", "market", "players", "tour"}


class OwnPagesInEnglish(MiddlewareMixin):
    """
    Switches to English for the demo's own pages, so that Django's dates and errors in them are English too. Put it
    after LocaleMiddleware.
    """

    def process_view(self, request: HttpRequest, view: object, args: Any, kwargs: Any) -> None:
        if request.resolver_match and OWN.intersection(request.resolver_match.app_names):
            translation.activate("en")
