"""
Permission to search address books. By default, people who may view a model in the admin may search the books that it
feeds. Nobody may search other books.

COMPONENTS["BOOKS"] names a class with the methods of Readers. One instance is made, without arguments. Its methods
are called for each search, in a thread that may use the database, so a person who has left a guild no longer finds
its members.
"""

from functools import lru_cache

from django.utils.module_loading import import_string

from components.conf import conf
from components.services.autocomplete.models import feeding


class Readers:
    """The default: people who may view a model may search its books. Subclass it to allow more."""

    def may_search(self, user: str, book: str) -> bool:
        """Return whether the person with this id may see the names in *book*. The book need not exist."""
        fed = feeding(book)
        return fed is not None and fed.may_view(user)


@lru_cache(maxsize=1)
def _made(path: str) -> Readers:
    made: Readers = import_string(path)()
    return made


def readers() -> Readers:
    """Return the instance of the class that COMPONENTS["BOOKS"] names. Raises ImportError."""
    return _made(conf().books)
