"""The input that offers names: what it renders, and what it makes of what is sent."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse

from components.services.autocomplete.widgets import CompleteInput, Typed


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))


def tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Tags()
    parser.feed(html)
    return parser.found


class LetterForm(forms.Form):
    to = forms.Field(widget=CompleteInput("guild:7", contacts=True, limit=5))


def test_it_is_an_input_that_knows_where_names_are() -> None:
    field, shown, hidden = tags(str(LetterForm()["to"]))

    sources = {"src": "/api/books/guild:7", "contacts": "/api/contacts", "limit": "5"}
    assert field == ("complete-field", sources)
    assert shown[0] == "input"
    assert (shown[1]["type"], shown[1]["name"], shown[1]["id"]) == ("text", "to", "id_to")
    assert hidden == ("input", {"type": "hidden", "name": "to-id", "value": ""})


def test_what_was_typed_and_the_name_of_the_book_are_written_as_they_are() -> None:
    form = forms.Form({"to": '<Jeff> "x"', "to-id": '"12'})
    form.fields["to"] = forms.Field(widget=CompleteInput('guild?"<é>'))

    (_, sources), (_, shown), (_, hidden) = tags(str(form["to"]))

    assert sources["src"] == "/api/books/guild%3F%22%3C%C3%A9%3E"
    assert (shown["value"], hidden["value"]) == ('<Jeff> "x"', '"12')


def test_a_book_with_a_slash_in_its_name_has_no_address() -> None:
    with pytest.raises(ImproperlyConfigured):
        CompleteInput("guild/7")


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ({}, None),
        ({"to": "  "}, None),
        ({"to": "", "to-id": "12"}, None),
        ({"to": " Jeff "}, Typed("Jeff")),
        ({"to": "Jeff", "to-id": "12"}, Typed("Jeff", "12")),
    ],
)
def test_a_message_is_sent_as_text_with_its_id_beside_it(sent: dict[str, str], typed: Typed | None) -> None:
    assert CompleteInput("a").value_from_datadict(sent, {}, "to") == typed


def test_its_script_is_a_module_in_a_file() -> None:
    media = str(LetterForm().media)

    texts = ("script", {"src": reverse("components:jsi18n"), "defer": None})
    script = ("script", {"src": "/static/components/autocomplete/field.js", "type": "module"})
    assert [each for each in tags(media) if each[0] == "script"] == [texts, script]
    assert "/static/components/autocomplete/autocomplete.css" in media
