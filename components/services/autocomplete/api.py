"""
The HTTP API of autocomplete: address books, searched by prefix, and the caller's recent contacts, which a page
fetches once and filters itself.

A book that the caller may not search answers like one that does not exist. The caller's browser may cache an answer
while they type. The ETag is computed from the answer, because ranks also change with time.
"""

from typing import Annotated, TypedDict

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.urls import path
from django.utils.translation import gettext
from msgspec import Meta

from components.api.endpoints import Answer, Reply, endpoint, operation
from components.api.problems import Problem
from components.api.requests import Part
from components.api.shapes import Instant, Nothing, Request, about, shaped
from components.kit.validation import MAX_NAME
from components.people import anames_of, people
from components.services.autocomplete import AddressBook, RecentContacts
from components.services.autocomplete.access import readers
from components.services.autocomplete.folding import MAX_ID, MAX_PREFIX
from components.services.rates import RateLimit

BOOK = Part("book", {"type": "string", "pattern": f"^[^/]{{1,{MAX_NAME}}}$"})

_KEPT = 15  # seconds that a browser may cache an answer, and so show a name that was removed
RATE = RateLimit("api:books", "30/3s")


class Typed(Request):
    q: Annotated[
        str,
        about(
            "What was typed. Capitals, accents and the width of letters do not count.",
            minLength=1,
            maxLength=MAX_PREFIX,
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=100)] = 10


class SelectedName(Request):
    id: Annotated[str, about(minLength=1, maxLength=MAX_ID)]


class Entry(TypedDict):
    id: str
    label: str


class Completions(TypedDict):
    entries: list[Entry]
    is_complete: Annotated[bool, about("There are no others.")]


class Contact(TypedDict):
    id: str
    label: str
    touched_at: Instant


class Contacts(TypedDict):
    contacts: list[Contact]


@operation("books", {200: Reply("At most 100, for the client to filter.", Contacts, "ETag")}, query=Nothing)
async def list_contacts(request: HttpRequest, user: str, given: Nothing) -> Answer:
    """List the people to whom the caller has written, the latest first."""
    found = await RecentContacts(user).alist()
    ids = {each.id for each in found}
    refused = await sync_to_async(people().refused)(user, ids) if ids else ids
    names = await anames_of(ids - refused)
    told: Contacts = {
        "contacts": [
            shaped(Contact, each, label=names.get(each.id) or each.label)
            for each in found
            if each.id not in refused
        ]
    }
    return Answer(told, max_age=0)


@operation(
    "books",
    {200: Reply("Popular and recently chosen names first, then by the alphabet.", Completions, "ETag")},
    query=Typed,
    problems=["book-not-found", "too-fast"],
)
async def complete_name(request: HttpRequest, user: str, given: Typed, book: str) -> Answer:
    """Find names with a word that begins with a prefix."""
    await _check(user, book)
    found = await AddressBook(book).acomplete(given.q, limit=given.limit)
    told: Completions = {
        "entries": [shaped(Entry, each) for each in found],
        "is_complete": found.is_whole,
    }
    return Answer(told, max_age=_KEPT)


@operation(
    "books",
    {204: Reply("Counted, if the id is in the book.")},
    body=SelectedName,
    problems=["book-not-found", "too-fast"],
)
async def select_name(request: HttpRequest, user: str, given: SelectedName, book: str) -> None:
    """Record that a name was chosen, so that it ranks higher."""
    await _check(user, book)
    await AddressBook(book).aselect(given.id)


async def _check(user: str, book: str) -> None:
    """Check that *user* may search *book* and has not asked too often. Raises Problem, TooFast."""
    await RATE.aacquire(user)
    if not await sync_to_async(readers().may_search)(user, book):
        raise Problem("book-not-found", gettext("There is no book with this name that you may search."))


urlpatterns = [
    path("contacts", endpoint(get=list_contacts), name="api-contacts"),
    path("books/<str:book>", endpoint(BOOK, get=complete_name), name="api-book"),
    path("books/<str:book>/select", endpoint(BOOK, post=select_name), name="api-select"),
]
