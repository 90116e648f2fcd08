"""
Feed: keeps the entries of address books in step with the rows of a model.

A place is a book and an id in it. Before a write, the feed notes the places of the rows that the write touches. After
the transaction has committed, it reads the rows of these places, and of the places where the rows are now, and
updates the entries. Because it reads the rows again, the order of two writers does not matter. Writes to related
models on a path count as well: a new name of a user changes the entries of their memberships.

The book misses a change if Redis is unavailable, if the process dies before the update, or if no signal was sent. If
two transactions move a row at once, a book that the row left may keep the name. A rebuild repairs all of this.
"""

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import models, transaction
from django.db.models import QuerySet
from django.db.models.signals import class_prepared, post_delete, post_save, pre_delete, pre_save

from components.kit.model_inheritance import family, home_of, note_home
from components.kit.validation import is_key
from components.people import may_view
from components.services.autocomplete import AddressBook, fold
from components.services.autocomplete.folding import MAX_ID, MAX_LABEL

logger = logging.getLogger(__name__)

_ROWS = 5_000  # rows of the table that are read at once
_MOST = 1_000  # places that one write updates; a rebuild is better if more depend on one row
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # a book refuses these


class Place(NamedTuple):
    """The place of an entry."""

    #: The value of *by*, which selects the book of the feed; None if the feed has only one book.
    part: Any
    id: Any


@dataclass
class Touched:
    """A model whose rows feed a book, or are related to rows that do."""

    model: type[models.Model]
    #: The fields that matter, and among them those that determine the place of a row.
    fields: set[str] = field(default_factory=set)
    moving: set[str] = field(default_factory=set)
    #: Whether the database makes one of them, from any others.
    is_generated: bool = False


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
        using: str | None = None,
    ) -> None:
        self.model, self.name, self._using = model, name, using
        note_home(model)
        self._label, self._id, self._by = label, id, by
        self._rows = rows
        #: The dispatch uid of the signal receivers, and the attribute of instances that holds their notes.
        self.uid = f"{__name__}:{name}"
        #: Each watched model, by the path from a row to it.
        self._touched: dict[str, Touched] = {}
        for path in filter(None, (label, id, by)):
            self._follow(path, moves=path != label)
        for touched in self._touched.values():
            for each in family(touched.model):
                self._watch(each)
        class_prepared.connect(self._watch, dispatch_uid=self.uid)

    def _watch(self, sender: type[models.Model], **kwargs: Any) -> None:
        """Connect to the write signals of *sender* if its rows feed the book, or are related to rows that do."""
        if not any(self._lookup(path, sender) for path in self._touched):
            return
        for signal in (pre_save, pre_delete):
            signal.connect(self._before, sender=sender, dispatch_uid=self.uid)
        for signal in (post_save, post_delete):
            signal.connect(self._after, sender=sender, dispatch_uid=self.uid)

    @property
    def _database(self) -> str:
        """Return the alias of the database whose rows feed the book. Rows of another may have the same ids."""
        return self._using or home_of(self.model)

    def book_of(self, part: Any) -> AddressBook:
        """Return the book of a place."""
        raise NotImplementedError

    def refresh(self, pk: Any, *, using: str | None = None) -> None:
        """Update the entry of the row *pk*, again if the row changes meanwhile."""
        for place in self._places("pk", pk, using):
            self._update(place, using)

    def may_view(self, user: str) -> bool:
        """Return whether the admin lets *user* view the model."""
        return may_view(user, self.model)

    def _follow(self, path: str, *, moves: bool) -> None:
        """Note the models that *path* leads through. Raises FieldDoesNotExist."""
        for model, lookup, found in steps(self.model, path):
            names = {found.name, getattr(found, "attname", found.name)}
            touched = self._touched.setdefault(lookup, Touched(model))
            touched.fields |= names
            touched.is_generated |= isinstance(found, models.GeneratedField)
            if moves:
                touched.moving |= names

    def _lookup(self, path: str, sender: type[models.Model]) -> str | None:
        """
        Return the lookup of the rows from which *path* leads to an instance of *sender*; None if its writes touch
        none. Children and proxies count as the model, and so do parents that have one of the fields that matter.
        """
        touched, concrete = self._touched[path], sender._meta.concrete_model
        if issubclass(sender, touched.model):
            return path
        if concrete is None or not issubclass(touched.model, concrete):
            return None
        key, theirs = concrete._meta.pk, concrete._meta.concrete_fields
        if not (touched.fields.intersection(each.name for each in theirs) or self._is_chosen(path)):
            return None
        return key.name if path == "pk" else f"{path}__{key.name}"

    def _is_chosen(self, path: str) -> bool:
        """Return whether any field of the model at *path* may decide whether a row belongs in the book."""
        return path == "pk" and self._rows is not None

    def _paths(self, sender: type[models.Model], fields: frozenset[str] | None) -> dict[str, str]:
        """Return the paths that a write of *fields* touches (None: all fields), with their lookups."""
        return {
            path: lookup
            for path, touched in self._touched.items()
            if (lookup := self._lookup(path, sender))
            and (fields is None or touched.is_generated or fields & touched.fields or self._is_chosen(path))
        }

    def _before(self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any) -> None:
        """Note the places of the rows that the write may move."""
        is_deleted, fields = kwargs["signal"] is pre_delete, kwargs.get("update_fields")
        left: set[Place] = set()
        is_known = is_key(instance.pk) and using == self._database
        for path, lookup in self._paths(sender, fields).items() if is_known else ():
            touched = self._touched[path]
            is_moved = touched.moving if fields is None or touched.is_generated else touched.moving & fields
            if is_deleted or is_moved:
                left |= self._places(lookup, instance.pk, using)
        if left:
            vars(instance._state)[self.uid] = left

    def _after(self, sender: type[models.Model], instance: Any, using: str, **kwargs: Any) -> None:
        paths = self._paths(sender, kwargs.get("update_fields"))
        left: set[Place] = vars(instance._state).pop(self.uid, set())
        key = instance.pk  # read now, because Django clears it after a delete

        def update() -> None:
            for place in left.union(*(self._places(lookup, key, using) for lookup in paths.values())):
                self._update(place, using)

        if paths and using == self._database:
            # A book that is out of date does not make the write fail, so the error is only logged.
            transaction.on_commit(update, using=using, robust=True)

    def _places(self, lookup: str, key: Any, using: str | None) -> set[Place]:
        """Return the places of the rows that *lookup* finds with the key of a row, also of those in no book."""
        if lookup == self._id == "pk" and self._by is None:
            return {Place(None, key)}
        rows = self.model._base_manager.using(using).filter(**{lookup: key})
        fields = [self._by, self._id] if self._by else [self._id]
        found = rows.order_by().values_list(*fields).distinct()[:_MOST]
        places = {Place(*each) if self._by else Place(None, *each) for each in found}
        if len(places) == _MOST:
            logger.warning(
                "%s: one write changed %s names or more. Run rebuildindex to update the rest.",
                self.name,
                _MOST,
            )
        return {
            place for place in places if place.id is not None and (place.part is not None or not self._by)
        }

    def _update(self, place: Place, using: str | None) -> None:
        book, id = self.book_of(place.part), _fit_id(place.id)
        written: str | None = ""  # differs from every label
        while id and (label := self._label_of(place, using)) != written:
            if label is None:
                book.remove(id)
                if self._by:  # otherwise, every deleted guild would leave an empty book
                    book.vacate()
            else:
                book.add(label, id=id)
            written = label

    def _table(self, using: str | None, part: Any) -> QuerySet[Any]:
        """Return the rows that belong in the book of *part*, or in any book if *part* is None."""
        rows = self._rows() if self._rows else self.model._default_manager.all()
        rows = rows.using(using or self._database)
        return rows if part is None or self._by is None else rows.filter(**{self._by: part})

    def _label_of(self, place: Place, using: str | None) -> str | None:
        """Return the label of the newest row at *place*; None if there is no row, or the row has no label."""
        rows = self._table(using, place.part).filter(**{self._id: place.id})
        return _cleaned(rows.order_by("-pk").values_list(self._label, flat=True).first())

    def _entries(self, using: str | None, part: Any = None) -> Iterator[tuple[str, str]]:
        rows = self._table(using, part).order_by("pk").values_list(self._id, self._label)
        for id, value in rows.iterator(chunk_size=_ROWS):
            if (known_by := _fit_id(id)) and (label := _cleaned(value)):
                yield known_by, label


def steps(model: type[models.Model], path: str) -> Iterator[tuple[type[models.Model], str, Any]]:
    """Yield each field on *path*, with its model and the path from a row to that model ("pk" for the row itself)."""
    lookup, parts = "pk", path.split("__")
    for at, part in enumerate(parts):
        found: Any = model._meta.pk if part == "pk" else model._meta.get_field(part)
        yield model, lookup, found
        if not found.is_relation:
            return  # the rest of the path is a transform
        model, lookup = found.related_model, "__".join(parts[: at + 1])


def _fit_id(value: Any) -> str | None:
    """Return *value* as the id of an entry; None if it cannot be one."""
    id = "" if value is None else str(value)
    return id if 0 < len(id) <= MAX_ID and not _NO_TEXT.search(id) else None


def _cleaned(value: Any) -> str | None:
    """Return *value* as a label; None if it has no visible character."""
    label = _NO_TEXT.sub(" ", "" if value is None else str(value)).strip()[:MAX_LABEL]
    return label if fold(label) else None
