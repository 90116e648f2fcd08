"""
Feed: what the rows of a model are in address books, and which writes change that.

A place is a book and an id in it. Before a write it is noted in which places the rows are that the write touches, and
once its transaction has committed those places, and the ones where the rows are then, are told what stands there now.
That is read anew, so it does not matter who of two writers tells it last. Rows of other models that a path leads
through count as well: who gives a user another name changes the rows of his memberships.

If Redis is away, or the process dies in between, the change is missing, and so it is with what sends no signals. Of a
row that two transactions move at once, the book that one of them left may keep the name. A rebuild makes it good.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import models, transaction
from django.db.models import QuerySet
from django.db.models.signals import class_prepared, post_delete, post_save, pre_delete, pre_save

from components.control_room.viewing import may_view
from components.kit.model_families import descendants
from components.services.autocomplete import AddressBook, fold
from components.services.autocomplete.folding import MAX_ID, MAX_LABEL

logger = logging.getLogger(__name__)

_ROWS = 5_000  # of the table, read at once
_MOST = 1_000  # places that one write tells; a model of which more hang on one row is better rebuilt
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # what a book refuses


class Place(NamedTuple):
    """Where an entry stands."""

    #: What tells its book from the others that are fed alike; None if there is one.
    part: Any
    id: Any


@dataclass
class Touched:
    """A model whose rows are, or lead to, rows that feed a book."""

    model: type[models.Model]
    #: The fields that count, and those of them that say in which place a row is.
    fields: set[str] = field(default_factory=set)
    moving: set[str] = field(default_factory=set)


class Feed:
    """The rows of *model*, by the paths *label*, *id* and *by*. See components.services.autocomplete.models."""

    def __init__(
        self,
        model: type[models.Model],
        label: str,
        *,
        name: str,
        id: str,
        by: str | None,
        rows: Callable[[], QuerySet[Any]] | None,
    ) -> None:
        self.model, self.name = model, name
        self._label, self._id, self._by = label, id, by
        self._rows = rows
        #: By the path that leads there from a row.
        self._touched: dict[str, Touched] = {}
        for path in filter(None, (label, id, by)):
            self._follow(path, moves=path != label)
        for touched in self._touched.values():
            for each in descendants(touched.model):
                self._watch(each)
        class_prepared.connect(self._watch, dispatch_uid=f"components.services.autocomplete.access:{name}")

    def _watch(self, sender: type[models.Model], **kwargs: Any) -> None:
        """Hear of writes of *sender*, if its rows are, or lead to, rows that feed the book."""
        if not any(issubclass(sender, touched.model) for touched in self._touched.values()):
            return
        for signal, receiver in (
            (pre_save, self._before),
            (pre_delete, self._before),
            (post_save, self._after),
            (post_delete, self._after),
        ):
            signal.connect(
                receiver, sender=sender, dispatch_uid=f"components.services.autocomplete.access:{self.name}"
            )

    def book_of(self, part: Any) -> AddressBook:
        """The book of a place."""
        raise NotImplementedError

    def refresh(self, pk: Any, *, using: str | None = None) -> None:
        """Tell its book what the row *pk* is now, until it still is that afterwards."""
        for place in self._places("pk", pk, using):
            self._tell(place, using)

    def may_view(self, user: str) -> bool:
        """Whether the admin lets *user* view the model."""
        return may_view(user, self.model)

    def _follow(self, path: str, *, moves: bool) -> None:
        """Note the models that *path* leads through. Raises FieldDoesNotExist."""
        for model, lookup, found in steps(self.model, path):
            names = {found.name, getattr(found, "attname", found.name)}
            touched = self._touched.setdefault(lookup, Touched(model))
            touched.fields |= names
            if moves:
                touched.moving |= names

    def _paths(self, sender: type[models.Model], fields: frozenset[str] | None) -> list[str]:
        """Which paths a write of these *fields* (None: all) touches; children and proxies are rows as well."""
        return [
            path
            for path, touched in self._touched.items()
            if issubclass(sender, touched.model)
            # Which rows belong into a book may hang on any of their own fields.
            and (fields is None or fields & touched.fields or (path == "pk" and self._rows is not None))
        ]

    def _before(self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any) -> None:
        """Note where the rows are that the write may move."""
        is_deleted, fields = kwargs["signal"] is pre_delete, kwargs.get("update_fields")
        left: set[Place] = set()
        for path in self._paths(sender, fields) if instance.pk is not None else ():
            moving = self._touched[path].moving
            if is_deleted or (moving if fields is None else moving & fields):
                left |= self._places(path, instance.pk, using)
        if left:
            vars(instance._state)[f"components.services.autocomplete.access:{self.name}"] = left

    def _after(self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any) -> None:
        paths = self._paths(sender, kwargs.get("update_fields"))
        left: set[Place] = vars(instance._state).pop(
            f"components.services.autocomplete.access:{self.name}", set()
        )
        key = instance.pk  # which a deleted instance loses

        def tell() -> None:
            for place in left.union(*(self._places(path, key, using) for path in paths)):
                self._tell(place, using)

        if paths:
            # A book that is behind is no reason to tell that the write has failed: it is logged.
            transaction.on_commit(tell, using=using, robust=True)

    def _places(self, path: str, key: Any, using: str | None) -> set[Place]:
        """Where the rows are that *path* leads from to the row *key*, whether they belong into the book or not."""
        if path == self._id == "pk" and self._by is None:
            return {Place(None, key)}
        rows = self.model._base_manager.using(using).filter(**{path: key})
        fields = [self._by, self._id] if self._by else [self._id]
        found = rows.order_by().values_list(*fields).distinct()[:_MOST]
        places = {Place(*each) if self._by else Place(None, *each) for each in found}
        if len(places) == _MOST:
            logger.warning(
                "%s: one write has changed %s names or more; rebuildindex tells those beyond",
                self.name,
                _MOST,
            )
        return {
            place for place in places if place.id is not None and (place.part is not None or not self._by)
        }

    def _tell(self, place: Place, using: str | None) -> None:
        book, id = self.book_of(place.part), _fit_id(place.id)
        told: str | None = ""  # which is never a label
        while id and (label := self._label_of(place, using)) != told:
            if label is None:
                book.remove(id)
                if self._by:  # or each guild that there ever was would leave an empty book
                    book.vacate()
            else:
                book.add(label, id=id)
            told = label

    def _table(self, using: str | None, part: Any) -> QuerySet[Any]:
        """The rows that belong into the book of *part*; None: into any."""
        rows = self._rows() if self._rows else self.model._default_manager.all()
        rows = rows if using is None else rows.using(using)
        return rows if part is None or self._by is None else rows.filter(**{self._by: part})

    def _label_of(self, place: Place, using: str | None) -> str | None:
        """That of the newest row there; None if there is none, or it has no label."""
        rows = self._table(using, place.part).filter(**{self._id: place.id})
        return _cleaned(rows.order_by("-pk").values_list(self._label, flat=True).first())

    def _entries(self, using: str | None, part: Any = None) -> Iterator[tuple[str, str]]:
        rows = self._table(using, part).order_by("pk").values_list(self._id, self._label)
        for id, value in rows.iterator(chunk_size=_ROWS):
            if (known_by := _fit_id(id)) and (label := _cleaned(value)):
                yield known_by, label


def steps(model: type[models.Model], path: str) -> Iterator[tuple[type[models.Model], str, Any]]:
    """Each field on *path*, with its model, and the path that leads there from a row: "pk" for the row's own."""
    lookup, parts = "pk", path.split("__")
    for at, part in enumerate(parts):
        found: Any = model._meta.pk if part == "pk" else model._meta.get_field(part)
        yield model, lookup, found
        if not found.is_relation:
            return  # what follows is a transform
        model, lookup = found.related_model, "__".join(parts[: at + 1])


def _fit_id(value: Any) -> str | None:
    """*value* as the id of an entry, if it can be one."""
    id = "" if value is None else str(value)
    return id if 0 < len(id) <= MAX_ID and not _NO_TEXT.search(id) else None


def _cleaned(value: Any) -> str | None:
    """*value* as a label; None if nothing of it can be seen."""
    label = _NO_TEXT.sub(" ", "" if value is None else str(value)).strip()[:MAX_LABEL]
    return label if fold(label) else None
