"""A page with the field, under a strict policy, of which nothing may be complained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings
from playwright.sync_api import Page

from components.people import Users
from components.services.autocomplete import AddressBook
from components.services.autocomplete.widgets import CompleteInput

BOOK = "guild:7"
NAMES = {"1": "Jeff", "2": "Jenny", "3": "Ann Jensen", "4": "Élodie", "5": "李小龙", "6": "<b>Jekyll</b>"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'"
HTML = """<!doctype html><html lang="en" dir="{dir}"><head><meta charset="utf-8"><title>Letter</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">{media}</head>
<body><main><h1>Letter</h1><form action="/letter" method="get">
<input type="hidden" name="csrfmiddlewaretoken" value="{token}">{field}<button>Send</button></form></main>
</body></html>"""
TOKEN = "a" * 32


class Unnamed(Users):
    """Contacts go by their labels: the ids of these tests are not those of users."""

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        return {}


class Everybody:
    def may_search(self, user: str, book: str) -> bool:
        return True


@pytest.fixture
def book(redis: Any) -> Iterator[AddressBook]:
    book = AddressBook(BOOK)
    book.load(NAMES.items())
    here = "tests.browser.complete_field.conftest"
    with override_settings(COMPONENTS={"BOOKS": f"{here}.Everybody", "PEOPLE": f"{here}.Unnamed"}):
        yield book


@pytest.fixture
def joe(transactional_db: None) -> User:
    return User.objects.create_user("joe")


@pytest.fixture
def opened(book: AddressBook, joe: User, client: Client, window: Callable[..., Any]) -> Iterator[Any]:
    """opened(**options of the widget): the page; dir= is its direction, script= runs before its own."""
    client.force_login(joe)
    windows = []

    def open_page(
        *, attrs: Any = None, context: Any = None, dir: str = "ltr", script: str = "", **options: Any
    ) -> Page:
        widget = CompleteInput(BOOK, attrs, **options)
        form = type("Form", (forms.Form,), {"to": forms.Field(widget=widget)})()
        shown = window(client, **(context or {}))
        shown.page.context.add_cookies([{"name": "csrftoken", "value": TOKEN, "url": shown.base}])
        html = HTML.format(media=form.media, field=form.as_p(), token=TOKEN, dir=dir)
        headers = {"Content-Security-Policy": POLICY, "Content-Type": "text/html"}
        shown.page.route("**/letter*", lambda route: route.fulfill(body=html, headers=headers))
        if script:
            shown.page.add_init_script(script)
        windows.append(shown)
        shown.open("/letter")
        if (context or {}).get("java_script_enabled", True):
            shown.page.locator("complete-field[data-live]").wait_for()
        return shown.page

    yield open_page
    for each in windows:
        assert [text for text in each.complaints if "Failed to load resource" not in text] == []
