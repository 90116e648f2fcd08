"""
ModelBook: an address book fed by a model, one entry for each row.

    players = ModelBook(Player, "name")                  # in books.py of an app, imported by its ready()
    players.book.complete("je")

A saved or deleted row is told to the book once its transaction has committed: what the row is then is read again, so
it does not matter who of two writers tells it last. If Redis is away, or the process dies in between, the change is
missing; so are bulk_create(), update() and raw SQL. `manage.py rebuildindex` makes the book what the table is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import models, transaction
from django.db.models import QuerySet
from django.db.models.signals import post_delete, post_save

from components.services.autocomplete import AddressBook, fold
from components.services.autocomplete.folding import MAX_LABEL

_ROWS = 5_000  # of the table, read at once
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # what a book refuses

_fed: dict[str, ModelBook] = {}


def model_books() -> Mapping[str, ModelBook]:
    """All that were declared, by the names of their books."""
    return MappingProxyType(_fed)


def feeding(name: str) -> ModelBook | None:
    """What feeds the book *name*; None if no model does."""
    return _fed.get(name)


class ModelBook:
    """
    The book called *name* (by default as the model, "market.player") has the *label* of each row: a field, or that of
    a related model ("user__username", whose own changes are not noticed). *rows* gives the rows that belong into it.
    """

    def __init__(
        self,
        model: type[models.Model],
        label: str,
        *,
        name: str | None = None,
        rows: Callable[[], QuerySet[Any]] | None = None,
    ) -> None:
        self.model, self.label = model, label
        self.book = AddressBook(name or model._meta.label_lower)
        self._rows = rows or model._default_manager.all
        if self.name in _fed:
            raise ImproperlyConfigured(
                f"Two models feed the book {self.name!r}; give one of them another name."
            )
        _fed[self.name] = self
        for signal in (post_save, post_delete):
            signal.connect(self._changed, dispatch_uid=f"components.books:{self.name}")

    @property
    def name(self) -> str:
        return self.book.name

    def rebuild(self, progress: Callable[[int], None] | None = None, *, using: str | None = None) -> int:
        """Make the book what the table is, beside the old one; how many entries it has."""
        return self.book.load(self._entries(using), replace=True, progress=progress)

    def refresh(self, pk: Any, *, using: str | None = None) -> None:
        """Tell the book what the row *pk* is now, until it still is that afterwards."""
        told: str | None = ""  # which is never a label
        while (label := self._label_of(pk, using)) != told:
            if label is None:
                self.book.remove(str(pk))
            else:
                self.book.add(label, id=str(pk))
            told = label

    def may_view(self, user: str) -> bool:
        """Whether the admin lets *user* view the model."""
        try:
            found = get_user_model()._default_manager.filter(pk=user).first()
        except (ValueError, ValidationError):  # an id of nobody
            return False
        if found is None or not found.is_active or not getattr(found, "is_staff", False):
            return False
        return found.has_perm(f"{self.model._meta.app_label}.view_{self.model._meta.model_name}")

    def _changed(self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any) -> None:
        """A signal's receiver; children and proxies of the model are rows of it as well."""
        if issubclass(sender, self.model):
            key = instance.pk  # which a deleted instance loses

            def tell() -> None:
                self.refresh(key, using=using)

            # A book that is behind is no reason to tell that the write has failed: it is logged.
            transaction.on_commit(tell, using=using, robust=True)

    def _table(self, using: str | None) -> QuerySet[Any]:
        return self._rows() if using is None else self._rows().using(using)

    def _label_of(self, pk: Any, using: str | None) -> str | None:
        """None if the row is not there, or has no label."""
        found = self._table(using).filter(pk=pk).values_list(self.label, flat=True).first()
        return _cleaned(found)

    def _entries(self, using: str | None) -> Iterator[tuple[str, str]]:
        for pk, value in self._table(using).values_list("pk", self.label).iterator(chunk_size=_ROWS):
            if label := _cleaned(value):
                yield str(pk), label


def _cleaned(value: Any) -> str | None:
    """*value* as a label; None if nothing of it can be seen."""
    label = _NO_TEXT.sub(" ", "" if value is None else str(value)).strip()[:MAX_LABEL]
    return label if fold(label) else None
