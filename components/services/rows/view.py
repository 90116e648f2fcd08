"""
rows_view(): a view that serves cached rows of a model as JSON, for pages that show changing values.

    path("stock", rows_view(Item.cached, fields=["stock"], readable=everybody))  # ?pk=1&pk=2
    path("stock/<str:pk>", rows_view(Item.cached, fields=["stock"], readable=everybody))

Only models for which the project makes a URL are served, only the fields named there, and only rows that *readable*
allows. A hit is one round trip to Redis, with no query if everybody may read. The ETag depends on the values, not on
when they were loaded: a client that asks every second gets 304 until a value changes. There is no Last-Modified,
because it is not known when a value changed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import floor
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.utils.translation import gettext
from msgspec import Meta, defstruct

from components.api.authentication import authenticate
from components.api.endpoints import Answer, View, endpoint
from components.api.problems import Problem
from components.api.requests import invalid, query
from components.api.shapes import Nothing, Request
from components.exceptions import InvalidName
from components.kit.validation import MAX_NAME
from components.people import may_view
from components.services.rates import RateLimit
from components.services.rows.models import CachedRows, FrozenRow

#: A function that takes the id of a user, and keys as text, and returns the keys of the rows that they may read. It
#: is called in a thread that may use the database.
Readable = Callable[[str, Sequence[str]], Collection[str]]

RATE = RateLimit("api:rows", "30/3s")


def everybody(user: str, keys: Sequence[str]) -> Collection[str]:
    """Let everybody read all rows, logged in or not. Clients are neither authenticated nor counted."""
    return keys


def rows_view(
    rows: CachedRows[Any], *, fields: Sequence[str], readable: Readable | None = None, most: int = 100
) -> View:
    """
    Return a view that serves *fields* of the *rows*, by the names of their columns; at most *most* rows at once.
    Users may read what *readable* allows: by default all rows, if the admin lets them view the model. Raises
    ImproperlyConfigured.
    """
    served = _Served(rows, fields, readable, most)
    return endpoint(who=_nobody if readable is everybody else authenticate, get=served.get)


async def _nobody(request: HttpRequest) -> str:
    return ""


class _Served:
    def __init__(
        self, rows: CachedRows[Any], fields: Sequence[str], readable: Readable | None, most: int
    ) -> None:
        self._rows, self._readable = rows, readable or self._by_permission
        keys = Annotated[list[Annotated[str, Meta(max_length=MAX_NAME)]], Meta(min_length=1, max_length=most)]
        self._keys: Any = defstruct("Keys", [("pk", keys)], bases=(Request,))
        self._is_public = readable is everybody
        places = rows.shape.places
        if isinstance(fields, str) or not fields or not set(fields) <= places.keys():
            raise ImproperlyConfigured(
                f"The fields {fields!r} of the rows {rows.name!r} cannot be served: a list of some of "
                f"{', '.join(places)} can."
            )
        self._columns = [(name, rows.shape.kinds[places[name]].encode) for name in fields]

    async def get(self, request: HttpRequest, user: str, pk: str | None = None) -> Answer:
        """Answer ?pk=1&pk=2 with the existing rows, as {"rows": {"1": …}}; the address of one row with its values."""
        if pk is None:
            pks = list(dict.fromkeys(query(request, self._keys).pk))
            found = await self._find(request, user, pks)
            return self._answer({"rows": {each: self._told(row) for each, row in found.items()}}, pks, found)
        query(request, Nothing)
        found = await self._find(request, user, [pk])
        if pk not in found:
            raise Problem("row-not-found", gettext("There is no row with this key that you may read."))
        return self._answer(self._told(found[pk]), [pk], found)

    async def _find(self, request: HttpRequest, user: str, pks: Sequence[str]) -> Mapping[str, FrozenRow]:
        """Return the existing rows that *user* may read. Raises Problem, TooFast, RowNotLoaded, RedisUnavailable."""
        is_asgi = isinstance(request, ASGIRequest)
        if not self._is_public:
            # Under WSGI, the event loop of a request would open its own connection.
            await (RATE.aacquire(user) if is_asgi else sync_to_async(RATE.acquire)(user))
        for each in pks:
            self._check(each)
        allowed = pks if self._is_public else set(await sync_to_async(self._readable)(user, pks))
        wanted = [each for each in pks if each in allowed]
        if is_asgi:
            return await self._rows.aget_many(wanted)
        return await sync_to_async(self._rows.get_many)(wanted)

    def _check(self, pk: str) -> None:
        try:
            key = self._rows.key(pk)
        except InvalidName:
            key = ""
        if not key or len(pk) > MAX_NAME or "\0" in pk:  # PostgreSQL refuses a NUL
            raise invalid("pk", gettext("No row can have the key %(key)r.") % {"key": pk[:50]})

    def _by_permission(self, user: str, keys: Sequence[str]) -> Collection[str]:
        return keys if may_view(user, self._rows.model) else ()

    def _told(self, row: FrozenRow) -> dict[str, Any]:
        values = [(name, encode, row.cached[name]) for name, encode in self._columns]
        return {name: None if value is None else encode(value) for name, encode, value in values}

    def _answer(self, told: dict[str, Any], pks: Sequence[str], found: Mapping[str, FrozenRow]) -> Answer:
        """Return the answer. Clients may cache it while all rows are there, and younger than their delay."""
        left = min((self._rows.delay - row.cached.age for row in found.values()), default=0.0)
        kept = max(0, floor(left)) if len(found) == len(pks) else 0
        return Answer(told, max_age=kept, is_public=self._is_public)
