"""
CompleteInput: an input that offers the names of a book, and of recent contacts, while a person types.

The form sends the text, with the id of the chosen entry if one was chosen. Typed holds both. Without scripts there is
only the text, and the fields of forms.py look up its entry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.forms.utils import flatatt
from django.urls import reverse, reverse_lazy
from django.utils.html import format_html
from django.utils.safestring import SafeString

LONGEST = 304  # characters: a name, and the id that may follow it to make it unique


@dataclass(frozen=True)
class Typed:
    """The submitted values. *id* is empty if *text* was only typed. A client may send any id."""

    text: str
    id: str = ""

    def __str__(self) -> str:
        return self.text


class CompleteInput(forms.TextInput):
    """
    A text input inside a <complete-field>.

    *book* is the name of a book, None for contacts only. *contacts* is True to offer the person's own contacts, or a
    URL that returns other contacts in the same format.
    """

    #: ModelChoiceField sets these on its widget, and the admin passes them on. They are not rendered.
    choices: Any = ()

    class Media:
        css = {"all": ["components/autocomplete/autocomplete.css"]}
        js = [
            # The texts of the next one; the address is known when the page is rendered.
            forms.Script(reverse_lazy("components:jsi18n"), defer=True),  # type: ignore[arg-type]
            forms.Script("components/autocomplete/field.js", type="module"),
        ]

    def __init__(
        self,
        book: str | None = None,
        attrs: Mapping[str, Any] | None = None,
        *,
        contacts: bool | str = False,
        limit: int = 10,
    ) -> None:
        if book is not None and "/" in book:
            raise ImproperlyConfigured(
                f"The book {book!r} has no address, because there is a slash in its name. Give it another name."
            )
        super().__init__({"autocomplete": "off", "maxlength": LONGEST, **(attrs or {})})
        self.book, self.contacts, self.limit = book, contacts, limit

    def format_value(self, value: Any) -> str | None:
        return None if value in (None, "") else str(value)

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        shown = super().render(name, value, attrs, renderer)
        id = value.id if isinstance(value, Typed) else ""
        hidden = format_html('<input type="hidden" name="{}" value="{}">', self._id_name(name), id)
        return format_html("<complete-field{}>{}{}</complete-field>", flatatt(self._sources()), shown, hidden)

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Typed | None:
        text = str(data.get(name) or "").strip()
        return Typed(text, str(data.get(self._id_name(name)) or "")) if text else None

    def _sources(self) -> dict[str, Any]:
        found: dict[str, Any] = {"limit": self.limit}
        if self.book is not None:
            found["src"] = reverse("components:api-book", args=[self.book])
        if self.contacts:
            address = self.contacts if isinstance(self.contacts, str) else None
            found["contacts"] = address or reverse("components:api-contacts")
        return found

    def _id_name(self, name: str) -> str:
        return f"{name}-id"
