"""The search in the history of a chat: a form that is sent by GET, so that a search has an address."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from components.exceptions import InvalidValue, TooFast
from components.services.chat import Chat, Found
from components.services.chat.api import messages
from components.services.chat.page.pages import entered, me, number_in, page
from components.services.chat.search import MAX_WORDS, Search

_FOUND = 20  # messages


@never_cache
@login_required
@require_safe
def search(request: HttpRequest, chat_id: str) -> HttpResponse:
    """Show the form, and what it finds."""
    news, words = entered(request, chat_id), request.GET.get("q", "").strip()
    found, error, status, wanted = Found((), None), "", 200, None
    if words:
        try:
            messages.RATE.acquire(me(request))  # together with the API
            wanted = Search(words)
            before = number_in(request.GET.get("before", ""))
            found = Chat(chat_id).search(me(request), words, before=before, limit=_FOUND)
        except InvalidValue:
            text = ngettext("Search for %(count)s word.", "Search for up to %(count)s words.", MAX_WORDS)
            error, status = text % {"count": MAX_WORDS}, 422
        except TooFast as too_fast:
            error, status = str(too_fast), 429
    return page(
        request,
        "search",
        news,
        title=gettext("Search"),
        status=status,
        messages=found.messages,
        search=wanted,
        words=words,
        next=found.next,
        error=error,
    )
