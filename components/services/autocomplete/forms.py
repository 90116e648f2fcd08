"""
Form fields whose values are in an address book: EntryField gives an Entry, EntryChoiceField an instance of a model.

A choice from the list sends an id. A name that was only typed is looked up by the server. The id counts only if the
name sent with it is the name of that entry. If several entries share a name, it is refused, and the error shows how
to write each of them: "Jeff [12]".
"""

import re
from typing import Any, cast

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.utils.translation import gettext_lazy as _

from components.exceptions import BookNotFound, InvalidValue
from components.services.autocomplete import AddressBook, Entry, fold
from components.services.autocomplete.widgets import LONGEST, CompleteInput, Typed

_MOST = 100  # entries whose names differ only in capitals or accents
_SHOWN = 5  # entries of the same name that a message lists
_WITH_ID = re.compile(r"(.+?)\s*\[([^\[\]]+)\]")

_UNKNOWN = _("There is nothing called %(name)s.")
_AMBIGUOUS = _("Several are called %(name)s. Write one of: %(ways)s.")


def resolve(book: AddressBook, typed: Typed) -> Entry:
    """Return the entry of *book* that was meant. Raises ValidationError, RedisUnavailable."""
    name = typed.text[:100]
    if len(typed.text) > LONGEST:  # also, the pattern would be slow on a long text
        raise ValidationError(_UNKNOWN, code="unknown", params={"name": name})
    if typed.id and (chosen := _of_id(book, typed.id, typed.text)):
        return chosen
    if (spelled := _WITH_ID.fullmatch(typed.text)) and (chosen := _of_id(book, spelled[2], spelled[1])):
        return chosen
    found = _called(book, typed.text)
    if not found:
        raise ValidationError(_UNKNOWN, code="unknown", params={"name": name})
    if len(found) > 1:
        ways = ", ".join(f"{each.label} [{each.id}]" for each in found[:_SHOWN])
        raise ValidationError(_AMBIGUOUS, code="ambiguous", params={"name": name, "ways": ways[:500]})
    return found[0]


def _of_id(book: AddressBook, id: str, name: str) -> Entry | None:
    """Return the entry *id* if it has this name, else None."""
    try:
        entry = book.get(id)
    except ValueError:  # the client made up this id
        return None
    return entry if entry and fold(entry.label) == fold(name) else None


def _called(book: AddressBook, name: str) -> list[Entry]:
    """Return the entries with exactly this name; if there are none, those that differ only in capitals or accents."""
    try:
        found = book.called(name, limit=_MOST)
    except (BookNotFound, InvalidValue):
        return []
    return [each for each in found if each.label == name] or found


class EntryField(forms.Field):
    """
    An entry of the book called *book*: every name is accepted, because the view decides who may see the form. With
    *contacts*, the recent contacts of the person are offered first.
    """

    widget: Any

    def __init__(self, book: str, *, contacts: bool | str = False, limit: int = 10, **options: Any) -> None:
        self.book = book
        options.setdefault("widget", CompleteInput(book, contacts=contacts, limit=limit))
        super().__init__(**options)

    def to_python(self, value: Any) -> Entry | None:
        if value in self.empty_values or isinstance(value, Entry):
            return value or None
        return resolve(AddressBook(self.book), value if isinstance(value, Typed) else Typed(str(value)))

    def prepare_value(self, value: Any) -> Any:
        return Typed(value.label, value.id) if isinstance(value, Entry) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return not self.disabled and _differs(self.prepare_value(initial), data)


class EntryChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """An instance of *queryset*, chosen by its entry in *book*, whose ids are primary keys."""

    def __init__(
        self,
        queryset: QuerySet[Any] | None,
        *,
        book: str,
        contacts: bool | str = False,
        limit: int = 10,
        **options: Any,
    ) -> None:
        self.book = book
        options.setdefault("widget", CompleteInput(book, contacts=contacts, limit=limit))
        super().__init__(queryset, **options)

    def to_python(self, value: Any) -> Model | None:
        if not isinstance(value, Typed):
            found: Model | None = super().to_python(value)
            return found
        named = self._of(value.id) if value.id else None
        if named is not None and fold(self.label_from_instance(named)) == fold(value.text):
            return named  # it need not be in the book
        entry = resolve(AddressBook(self.book), value)
        if (chosen := self._of(entry.id)) is None:
            raise ValidationError(self.error_messages["invalid_choice"], code="invalid_choice")
        return chosen

    def prepare_value(self, value: Any) -> Any:
        """Return the text to show for an instance, or for a primary key from the initial data of a form."""
        if value in self.empty_values or isinstance(value, Typed):
            return value
        try:
            instance: Any = super().to_python(value)
        except ValidationError:  # it was deleted, or cannot be chosen any more
            return None
        return Typed(self.label_from_instance(instance), str(instance.pk))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return not self.disabled and _differs(self.prepare_value(initial), data)

    def _of(self, id: str) -> Model | None:
        """Return the instance with this primary key if it may be chosen, else None."""
        try:
            found: Model | None = None if "\0" in id else cast(Any, self.queryset).filter(pk=id).first()
        except (ValueError, TypeError, ValidationError):  # the client made up this id
            return None
        return found


def _differs(initial: Any, data: Any) -> bool:
    """Return whether the ids differ; if no id was sent, whether the texts differ."""
    if isinstance(initial, Typed) and isinstance(data, Typed) and data.id:
        return initial != data
    return str(initial or "") != str(data or "")
