"""
Address books, searched by prefix; and the recent contacts of who asks, which a page gets once and filters itself.

A book that one may not search answers as one that there is not. Answers may be kept by the asker's own browser for as
long as somebody types; the ETag is that of the answer, as what ranks names changes with time as well.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.http import HttpRequest

from components.api import shapes
from components.api.endpoints import Answer
from components.api.fields import Values, body, query
from components.api.persons import names_of
from components.api.problems import Problem
from components.api.throttle import Throttle
from components.kit.values import MAX_NAME
from components.people import people
from components.services.autocomplete import AddressBook, RecentContacts
from components.services.autocomplete.access import readers

_MOST = 100  # names in one answer
_KEPT = 15  # seconds: who has left the book is shown no longer than that
_throttle = Throttle(rate=10, burst=30)


async def complete(request: HttpRequest, user: str, book: str) -> Answer:
    """GET books/{book}?q=&limit=: names that begin with q, or have a word that does."""
    values = query(request, "q", "limit")
    prefix, limit = values.text("q", longest=MAX_NAME), _limit(values)
    await _check(user, book)
    found = await AddressBook(book).acomplete(prefix, limit=limit)
    told = {"entries": [shapes.entry(each) for each in found], "is_complete": found.is_whole}
    return Answer(told, max_age=_KEPT)


async def select(request: HttpRequest, user: str, book: str) -> Answer:
    """POST books/{book}/select {"id"}: this one was chosen, and is shown earlier from now on."""
    id = body(request, "id").text("id", longest=MAX_NAME)
    await _check(user, book)
    await AddressBook(book).aselect(id)
    return Answer()


async def contacts(request: HttpRequest, user: str) -> Answer:
    """GET contacts: to whom one has written, the latest first, as they are called now."""
    query(request)
    found = await RecentContacts(user).alist()
    ids = {each.id for each in found}
    refused = await sync_to_async(people().refused)(user, ids) if ids else ids
    names = await names_of(ids - refused)
    told = {
        "contacts": [shapes.contact(each, names.get(each.id)) for each in found if each.id not in refused]
    }
    return Answer(told, max_age=0)


async def _check(user: str, book: str) -> None:
    """Raises Problem unless *user* may search *book*, and has not asked too often."""
    _throttle.check(user)
    if not await sync_to_async(readers().may_search)(user, book):
        raise Problem("book-not-found", "There is no book of this name that you may search.")


def _limit(values: Values) -> int:
    limit: int = values.integer("limit", 10, least=1, most=_MOST)
    return limit
