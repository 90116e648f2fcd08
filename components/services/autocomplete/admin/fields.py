"""
BookFieldsMixin: choose the foreign keys of a ModelAdmin by name from an address book.

It replaces autocomplete_fields: a search asks the book, not the database, and finds names by their words. The class
that COMPONENTS["BOOKS"] names decides who may search the book. By default, people may search it if they may view the
model that feeds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db.models import Field, ForeignKey
from django.forms import Field as FormField
from django.forms import ModelChoiceField
from django.http import HttpRequest

from components.services.autocomplete.forms import EntryChoiceField
from components.services.autocomplete.widgets import CompleteInput


class BookFieldsMixin:
    """For a ModelAdmin or an inline. Put it first among the bases."""

    #: The book of each foreign key, such as {"seller": "market.player"}.
    book_fields: Mapping[str, str] = {}

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest | None, **kwargs: Any
    ) -> ModelChoiceField[Any] | None:
        if book := self.book_fields.get(db_field.name):
            widget = CompleteInput(book, {"class": "vTextField"})
            kwargs = {"form_class": EntryChoiceField, "book": book, "widget": widget, **kwargs}
        found: ModelChoiceField[Any] | None = super().formfield_for_foreignkey(db_field, request, **kwargs)  # type: ignore[misc]
        return found

    def formfield_for_dbfield(
        self, db_field: Field[Any, Any], request: HttpRequest | None, **kwargs: Any
    ) -> FormField | None:
        found: FormField | None = super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]
        # The links that Django's wrapper adds would set a primary key instead of a name.
        if (
            found
            and db_field.name in self.book_fields
            and isinstance(found.widget, RelatedFieldWidgetWrapper)
        ):
            found.widget = found.widget.widget
        return found
