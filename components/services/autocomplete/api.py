"""
Address books, searched by prefix, and the caller's recent contacts, which a page gets once and filters itself.

A book that the caller may not search answers like one that does not exist. The caller's own browser may keep an
answer while they type. The ETag is that of the answer, because ranks also change with time.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.urls import path

from components.api import shapes
from components.api.endpoints import Answer, endpoint
from components.api.fields import Values, body, query
from components.api.problems import Problem
from components.api.throttle import Throttle
from components.kit.values import MAX_NAME
from components.people import anames_of, people
from components.services.autocomplete import AddressBook, RecentContacts
from components.services.autocomplete.access import readers

_MOST = 100  # names in one answer
_KEPT = 15  # seconds for which a name that has left the book may still be shown
_throttle = Throttle(rate=10, burst=30)


async def complete(request: HttpRequest, user: str, book: str) -> Answer:
    """GET books/{book}?q=&limit=: return names that begin with q, or have a word that does."""
    values = query(request, "q", "limit")
    prefix, limit = values.text("q", longest=MAX_NAME), _limit(values)
    await _check(user, book)
    found = await AddressBook(book).acomplete(prefix, limit=limit)
    told = {"entries": [shapes.entry(each) for each in found], "is_complete": found.is_whole}
    return Answer(told, max_age=_KEPT)


async def select(request: HttpRequest, user: str, book: str) -> Answer:
    """POST books/{book}/select {"id"}: show this entry earlier from now on, as it was chosen."""
    id = body(request, "id").text("id", longest=MAX_NAME)
    await _check(user, book)
    await AddressBook(book).aselect(id)
    return Answer()


async def contacts(request: HttpRequest, user: str) -> Answer:
    """GET contacts: return to whom the caller has written, the latest first, by their present names."""
    query(request)
    found = await RecentContacts(user).alist()
    ids = {each.id for each in found}
    refused = await sync_to_async(people().refused)(user, ids) if ids else ids
    names = await anames_of(ids - refused)
    told = {
        "contacts": [shapes.contact(each, names.get(each.id)) for each in found if each.id not in refused]
    }
    return Answer(told, max_age=0)


async def _check(user: str, book: str) -> None:
    """Check that *user* may search *book* and has not asked too often. Raises Problem."""
    _throttle.check(user)
    if not await sync_to_async(readers().may_search)(user, book):
        raise Problem("book-not-found", "There is no book of this name that you may search.")


def _limit(values: Values) -> int:
    limit: int = values.integer("limit", 10, least=1, most=_MOST)
    return limit


urlpatterns = [
    path("contacts", endpoint(get=contacts), name="api-contacts"),
    path("books/<str:book>", endpoint(get=complete), name="api-book"),
    path("books/<str:book>/select", endpoint(post=select), name="api-select"),
]
