"""
Address books fed by models, with an entry for each row. ModelBook is one book, ModelBooks one for each guild or
tenant. The book follows each change after it has committed (feeding.py). Changes that send no signals, by
bulk_create(), update() or raw SQL, are picked up by `manage.py rebuildindex`, which loads the books from the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import models
from django.db.models import QuerySet

from components.services.autocomplete import AddressBook, AddressBookReader
from components.services.autocomplete.feeding import Feed, steps

#: A function that is called with the number of entries loaded so far.
Progress = Callable[[int], None]


class ModelBook(Feed):
    """
    The book *name*, by default named after its model ("market.player"), with the *label* of each row.

    The label is a field of the model, or of a related one ("user__username"). *id* is the field whose values are the
    ids of entries. *rows* is a function that returns the rows that belong in the book. *using* is the alias of their
    database, by default the one that routers choose outside of requests: writes in others do not change the book.
    """

    def __init__(
        self,
        model: type[models.Model],
        label: str,
        *,
        name: str | None = None,
        id: str = "pk",
        rows: Callable[[], QuerySet[Any]] | None = None,
        using: str | None = None,
    ) -> None:
        self.book = AddressBook(name or model._meta.label_lower)
        _declare(self.book.name, self)
        super().__init__(model, label, name=self.book.name, id=id, by=None, rows=rows, using=using)

    def book_of(self, part: Any) -> AddressBook:
        return self.book

    def rebuild(self, progress: Progress | None = None, *, using: str | None = None) -> int:
        """Load the book from the table, beside the old one. Return how many entries it has."""
        return self.book.load(self._entries(using), replace=True, progress=progress)


class ModelBooks(Feed):
    """
    One book for each value of the field *by*. *name* ends with {}, which stands for the value: "guild:{}". Everything
    else is as in ModelBook. A row without a value of *by* is in no book. A row whose value changes moves.
    """

    def __init__(
        self,
        model: type[models.Model],
        label: str,
        *,
        by: str,
        name: str,
        id: str = "pk",
        rows: Callable[[], QuerySet[Any]] | None = None,
        using: str | None = None,
    ) -> None:
        self._lead = name.removesuffix("{}")
        if not self._lead or "{" in self._lead or self._lead == name:
            raise ImproperlyConfigured(
                f"The name of the books is {name!r}; it must end with {{}}, such as 'guild:{{}}'."
            )
        _declare(name, self)
        super().__init__(model, label, name=name, id=id, by=by, rows=rows, using=using)
        self.by = by
        *_, (_, _, found) = steps(model, by)
        #: The field that has the values: for a foreign key, the field that it refers to.
        self._field = found.target_field if found.is_relation else found

    def of(self, value: Any) -> AddressBook:
        """Return the book of this value of the field. For a foreign key, the value is a primary key."""
        return AddressBook(f"{self._lead}{value}")

    def book_of(self, part: Any) -> AddressBook:
        return self.of(part)

    def rebuild(self, progress: Progress | None = None, *, using: str | None = None) -> int:
        """Load all books from the table, and remove those without rows. Return how many entries they have."""
        done = 0

        def told(count: int) -> None:
            if progress:
                progress(done + count)

        values = set(self._table(using, None).order_by().values_list(self.by, flat=True).distinct()) - {None}
        there = {self.value_of(name) for name in AddressBookReader().names()} - {None}
        for value in sorted(values | there, key=str):
            done += self.rebuild_one(value, told, using=using)
        return done

    def rebuild_one(self, value: Any, progress: Progress | None = None, *, using: str | None = None) -> int:
        """Load the book of *value* from the table, or remove it if it has no row. Return how many entries it has."""
        book = self.of(value)
        while not (count := book.load(self._entries(using, value), replace=True, progress=progress)):
            book.erase()
            if next(self._entries(using, value), None) is None:  # else a row was added after the removal
                break
        return count

    def value_of(self, name: str) -> Any:
        """Return the value of the field whose book is called *name*; None if it cannot be one."""
        if not name.startswith(self._lead):
            return None
        text = name.removeprefix(self._lead)
        try:
            value = self._field.to_python(text)
        except ValidationError:
            return None
        return value if text and str(value) == text else None


@dataclass(frozen=True)
class _One:
    """The book of one value among those that a ModelBooks feeds."""

    name: str
    model: type[models.Model]
    rebuild: Callable[..., int]
    may_view: Callable[[str], bool]


#: A book that a model feeds, or several such books.
Fed: TypeAlias = ModelBook | ModelBooks | _One

_fed: dict[str, ModelBook | ModelBooks] = {}


def model_books() -> Mapping[str, ModelBook | ModelBooks]:
    """Return all declared ModelBook and ModelBooks objects by name, which is "guild:{}" for ModelBooks."""
    return MappingProxyType(_fed)


def feeding(name: str) -> Fed | None:
    """Return the object that feeds the book *name*, or the books "guild:{}"; None if no model feeds it."""
    if name in _fed:
        return _fed[name]
    many = [each for each in _fed.values() if isinstance(each, ModelBooks)]
    for each in sorted(many, key=lambda each: len(each.name), reverse=True):
        if (value := each.value_of(name)) is not None:
            return _One(each.of(value).name, each.model, partial(each.rebuild_one, value), each.may_view)
    return None


def _declare(name: str, fed: ModelBook | ModelBooks) -> None:
    if name in _fed:
        raise ImproperlyConfigured(f"Two models feed the book {name!r}; give one of them another name.")
    _fed[name] = fed
