"""
NamesField: a text with the names of several people. Its cleaned value is a list of their ids.

While somebody types, it offers recent contacts and the book that COMPONENTS["PEOPLE"] names for the visitor. The form
sends the text, with or without scripts; its names are looked up among people and in that book.
"""

import re
from collections.abc import Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import flatatt
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.people import people, unwilling
from components.services.autocomplete import AddressBook
from components.services.autocomplete.access import readers
from components.services.autocomplete.forms import resolve
from components.services.autocomplete.widgets import Typed

_LONGEST = 4_000  # characters


class NamesInput(forms.TextInput):
    """A text input inside of a <complete-field> for a list of names."""

    #: The name of a book; None for recent contacts only.
    book: str | None = None

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        sources = {"contacts": reverse("components:api-contacts"), "separator": ","}
        if self.book is not None:
            sources["src"] = reverse("components:api-book", args=[self.book])
        shown = super().render(name, value, attrs, renderer)
        return format_html("<complete-field{}>{}</complete-field>", flatatt(sources), shown)


class NamesField(forms.CharField):
    """A field for the visitor *by*, whom the form sets. Without a visitor, it finds nobody."""

    widget = NamesInput

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=_LONGEST, **options)
        self.error_messages["required"] = _("Give at least one user name.")
        self._by = ""
        self._book: str | None = None

    def asked_by(self, by: str) -> None:
        name = people().book(by)
        self._by, self._book = by, name if name and readers().may_search(by, name) else None
        self.widget.book = self._book

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        plain = {"autocapitalize": "none", "autocomplete": "off", "spellcheck": "false"}
        return {**super().widget_attrs(widget), **plain}

    def clean(self, value: Any) -> Any:
        text: str = super().clean(value)
        return self._found(text) if text else []

    def _found(self, text: str) -> list[str]:
        """
        Return the ids of the named people. Raises ValidationError, which does not reveal whether a person exists whom
        the visitor must not write to.
        """
        parts = [bare for part in re.split(r"[,;\r\n]+", text) if (bare := part.strip().lstrip("@"))]
        if not parts:
            raise ValidationError(self.error_messages["required"], code="required")
        known = people().find({*parts, *(word for part in parts for word in _words(part))})
        named = [pair for part in parts for pair in self._of(part, known)]
        ids = {id for _name, id in named if id}
        refused = people().refused(self._by, ids) | unwilling(self._by, ids)
        if missing := [name for name, id in named if not id or id in refused]:
            names = ", ".join(missing)[:200]
            raise ValidationError(
                gettext("There is nobody with this name to whom you may write: %(names)s.") % {"names": names}
            )
        return list(dict.fromkeys(id for _name, id in named if id))

    def _of(self, part: str, known: dict[str, str]) -> Iterator[tuple[str, str | None]]:
        """Yield names and ids. *part* is one name, which may contain blanks, or else several names without blanks."""
        whole = known.get(part) or self._in_book(part)
        if whole or len(words := _words(part)) < 2:
            yield part, whole
            return
        for word in words:
            yield word, known.get(word) or self._in_book(word)

    def _in_book(self, name: str) -> str | None:
        if self._book is None:
            return None
        try:
            return resolve(AddressBook(self._book), Typed(name)).id
        except ValidationError as error:
            if error.code == "ambiguous":  # the error shows how to write each of the names
                raise
            return None


def _words(part: str) -> list[str]:
    return [bare for word in part.split() if (bare := word.lstrip("@"))]
