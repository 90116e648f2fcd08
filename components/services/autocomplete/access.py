"""
Permission to search address books. By default, a book that a model feeds is for people whom the admin lets view the
model, and any other book is for nobody.

COMPONENTS["BOOKS"] names a class with the methods of Readers, made once without arguments. They are called at each
search, in a thread that may use the database: a person who has left a guild finds none of its members any more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from django.utils.module_loading import import_string

from components.conf import conf
from components.services.autocomplete.models import feeding


class BookReaders(Protocol):
    """The methods that the class named by COMPONENTS["BOOKS"] must have."""

    def may_search(self, user: str, book: str) -> bool:
        """Return whether the person of this id may see the names in *book*, which need not exist."""


class Readers:
    """The default: a book of a model is for people who may view the model. Derive from it to allow more."""

    def may_search(self, user: str, book: str) -> bool:
        fed = feeding(book)
        return fed is not None and fed.may_view(user)


@lru_cache(maxsize=1)
def _made(path: str) -> BookReaders:
    made: BookReaders = import_string(path)()
    return made


def readers() -> BookReaders:
    """Return the instance of what COMPONENTS["BOOKS"] names. Raises ImportError."""
    return _made(conf().books)
