"""
Who may search which address book. By default, one that a model feeds is for those whom the admin lets view the model,
and any other is for nobody.

COMPONENTS["BOOKS"] names a class with the methods of Readers, made once without arguments. They are called at each
search, in a thread that may use the database: who has left a guild finds nobody of it any more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from django.utils.module_loading import import_string

from components.conf import conf
from components.services.autocomplete.models import feeding


class BookReaders(Protocol):
    """What a class that knows the readers of books must be able to tell."""

    def may_search(self, user: str, book: str) -> bool:
        """Whether the person of this id may see the names in *book*, which need not exist."""


class Readers:
    """A book of a model is for those who may view the model; good to derive from."""

    def may_search(self, user: str, book: str) -> bool:
        fed = feeding(book)
        return fed is not None and fed.may_view(user)


@lru_cache(maxsize=1)
def _made(path: str) -> BookReaders:
    made: BookReaders = import_string(path)()
    return made


def readers() -> BookReaders:
    """What COMPONENTS["BOOKS"] names. Raises ImportError."""
    return _made(conf().books)
