"""Foreign keys that are chosen by name from an address book, in a ModelAdmin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import RequestFactory
from redis import Redis

from components.services.autocomplete import AddressBook
from components.services.autocomplete.admin.fields import BookFieldsMixin
from tests.db.models import Box, Shelf


class BoxAdmin(BookFieldsMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    book_fields = {"shelf": "db.shelf"}
    fields = ["name", "shelf"]


@pytest.fixture
def shelf(redis: Redis, db: None) -> Shelf:
    shelf = Shelf.objects.create(name="Maps")
    AddressBook("db.shelf").add("Maps", id=str(shelf.pk))
    return shelf


@pytest.fixture
def form(db: None) -> Any:
    """The form class that the admin uses for a box."""
    site = admin.AdminSite()
    site.register(Shelf, admin.ModelAdmin)
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("chief")
    return BoxAdmin(Box, site).get_form(request)


def test_a_row_is_chosen_by_its_name(form: Any, shelf: Shelf) -> None:
    filled = form({"name": "a", "shelf": "maps"})

    assert filled.is_valid(), filled.errors
    assert filled.save(commit=False).shelf == shelf
    assert list(form({"name": "a", "shelf": "Charts"}).errors) == ["shelf"]


def test_the_row_of_a_field_is_shown_and_has_not_changed(form: Any, shelf: Shelf) -> None:
    box = Box.objects.create(name="a", shelf=shelf)
    shown = str(form(instance=box)["shelf"])
    sent = {"name": "a", "shelf": str(shelf), "shelf-id": str(shelf.pk)}

    assert '<complete-field limit="10" src="/api/books/db.shelf">' in shown
    assert f'value="{shelf}"' in shown
    assert f'value="{shelf.pk}"' in shown
    assert form(sent, instance=box).changed_data == []
    assert "related-widget-wrapper" not in shown
