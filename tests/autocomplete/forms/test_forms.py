"""Fields whose values stand in an address book, with a list to choose from and without one."""

from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.test import RequestFactory
from django.urls import reverse
from pytest_django.asserts import assertHTMLEqual
from redis import Redis

from components.services.autocomplete import AddressBook, Entry
from components.services.autocomplete.admin.fields import BookFieldsMixin
from components.services.autocomplete.forms import EntryChoiceField, EntryField
from components.services.autocomplete.widgets import CompleteInput, Typed
from tests.db.models import Box, Shelf

JEFF = Entry("12", "Jeff")
BLANKS = "a" + " " * 1_000_000 + "b"


@pytest.fixture(autouse=True)
def book(redis: Redis) -> AddressBook:
    book = AddressBook("guild:7")
    named = [("12", "Jeff"), ("13", "Jeffrey"), ("20", "Sam"), ("21", "Sam"), ("30", "José"), ("31", "Jose")]
    for id, label in named:
        book.add(label, id=id)
    return book


class LetterForm(forms.Form):
    to = EntryField("guild:7", required=False)


def cleaned(text: str, id: str = "") -> Any:
    form = LetterForm({"to": text, "to-id": id})
    assert form.is_valid(), form.errors
    return form.cleaned_data["to"]


def refusal(text: str) -> ValidationError:
    [error] = LetterForm({"to": text}).errors.as_data()["to"]
    return error


@pytest.mark.parametrize(
    ("text", "id", "found"),
    [
        *[(text, "", JEFF) for text in ("Jeff", " jEFF ", "Jeff [12]", "jeff[12]")],
        *[("Jeff", id, JEFF) for id in ("12", "13", "99", "\0", "x" * 1_000)],
        ("Sam", "21", Entry("21", "Sam")),
        ("José", "", Entry("30", "José")),
        ("Jose", "", Entry("31", "Jose")),
        ("", "", None),
        ("  ", "12", None),
    ],
)
def test_a_name_is_looked_up_unless_its_id_is_there_and_fits(text: str, id: str, found: Entry | None) -> None:
    assert cleaned(text, id) == found


@pytest.mark.parametrize(
    "text", ["Jef", "Nobody", "Jeff [13]", "a" * 1_000, "\ud800", "a\0b", pytest.param(BLANKS, id="blanks")]
)
def test_an_invalid_book_name_is_refused(text: str) -> None:
    error = refusal(text)

    assert error.code in ("unknown", "null_characters_not_allowed")
    assert len(" ".join(error.messages)) < 300


def test_a_name_of_several_is_refused_with_the_ways_to_write_each() -> None:
    error = refusal("sam")

    assert error.code == "ambiguous"
    [message] = error.messages
    assert "Sam [20], Sam [21]" in message
    assert cleaned("Sam [21]") == Entry("21", "Sam")
    assert refusal("JOSE").code == "ambiguous"


def test_a_field_that_was_not_touched_has_not_changed() -> None:
    initial = {"to": JEFF}

    assert not LetterForm({"to": "Jeff", "to-id": "12"}, initial=initial).has_changed()
    assert not LetterForm({"to": "Jeff"}, initial=initial).has_changed()
    assert LetterForm({"to": "Sam", "to-id": "20"}, initial=initial).has_changed()
    assert LetterForm({}, initial=initial).has_changed()
    assert not LetterForm({}).has_changed()
    assert 'value="12"' in str(LetterForm(initial=initial)["to"])


class UserForm(forms.Form):
    user = EntryChoiceField(User.objects.filter(is_active=True), book="users", required=False)


@pytest.fixture
def joe(db: None) -> User:
    joe = User.objects.create_user("joe")
    AddressBook("users").add("joe", id=str(joe.pk))
    return joe


def test_an_instance_is_found_by_its_id_or_by_its_name(joe: User) -> None:
    for sent in ({"user": "joe", "user-id": str(joe.pk)}, {"user": "JOE"}, {"user": "joe", "user-id": "x\0"}):
        form = UserForm(sent)
        assert form.is_valid(), form.errors
        assert form.cleaned_data["user"] == joe
    late = User.objects.create_user("late")  # of whom the book has not heard yet
    form = UserForm({"user": "late", "user-id": str(late.pk)})
    assert form.is_valid(), form.errors
    assert form.cleaned_data["user"] == late


def test_an_instance_that_is_not_in_the_queryset_cannot_be_chosen(joe: User) -> None:
    User.objects.update(is_active=False)

    for sent in ({"user": "joe", "user-id": str(joe.pk)}, {"user": "joe"}):
        form = UserForm(sent)
        assert [error.code for error in form.errors.as_data()["user"]] == ["invalid_choice"]


def test_an_instance_is_shown_by_its_name(joe: User) -> None:
    for initial in (joe, joe.pk, str(joe.pk)):
        form = UserForm({"user": "joe", "user-id": str(joe.pk)}, initial={"user": initial})
        assert not form.has_changed()
        html = str(UserForm(initial={"user": initial})["user"])
        assert 'value="joe"' in html
        assert f'value="{joe.pk}"' in html
    assert 'value="' not in str(UserForm(initial={"user": 999})["user"]).replace('value=""', "")


def test_a_field_takes_what_a_program_gives_it(joe: User) -> None:
    assert EntryChoiceField(User.objects.all(), book="users").clean(joe.pk) == joe
    assert EntryField("guild:7").clean("Jeff") == JEFF
    assert EntryField("guild:7").clean(Typed("Jeff")) == JEFF


class BoxAdmin(BookFieldsMixin, admin.ModelAdmin):  # type: ignore[type-arg]
    book_fields = {"shelf": "db.shelf"}
    fields = ["name", "shelf"]


def test_a_row_is_chosen_by_its_name_in_the_admin(db: None) -> None:
    shelf = Shelf.objects.create(name="Maps")
    AddressBook("db.shelf").add("Maps", id=str(shelf.pk))
    site, request = admin.AdminSite(), RequestFactory().get("/")
    site.register(Shelf, admin.ModelAdmin)
    request.user = User.objects.create_superuser("chief")
    form: Any = BoxAdmin(Box, site).get_form(request)

    filled = form({"name": "a", "shelf": "maps"})

    assert filled.is_valid(), filled.errors
    assert filled.save(commit=False).shelf == shelf
    assert list(form({"name": "a", "shelf": "Charts"}).errors) == ["shelf"]
    box = Box.objects.create(name="a", shelf=shelf)
    shown = str(form(instance=box)["shelf"])
    sent = {"name": "a", "shelf": str(shelf), "shelf-id": str(shelf.pk)}

    assert '<complete-field limit="10" src="/api/books/db.shelf">' in shown
    assert f'value="{shelf}"' in shown
    assert f'value="{shelf.pk}"' in shown
    assert form(sent, instance=box).changed_data == []
    assert "related-widget-wrapper" not in shown


class AddressForm(forms.Form):
    to = forms.Field(widget=CompleteInput('guild?"<é>', contacts=True, limit=5), required=False)


def test_it_is_an_input_that_knows_where_names_are_with_a_script_in_a_file() -> None:
    shown = AddressForm({"to": '<Jeff> "x"', "to-id": '"12'})

    assertHTMLEqual(
        str(shown["to"]),
        """<complete-field contacts="/api/contacts" limit="5" src="/api/books/guild%3F%22%3C%C3%A9%3E">
        <input type="text" name="to" value="&lt;Jeff&gt; &quot;x&quot;" autocomplete="off" maxlength="304"
            id="id_to"><input type="hidden" name="to-id" value="&quot;12"></complete-field>""",
    )
    media = str(shown.media)
    assert f'<script src="{reverse("components:jsi18n")}" defer></script>' in media
    assert '<script src="/static/components/autocomplete/field.js" type="module"></script>' in media
    assert "/static/components/autocomplete/autocomplete.css" in media


def test_a_book_with_a_slash_in_its_name_has_no_address() -> None:
    with pytest.raises(ImproperlyConfigured):
        CompleteInput("guild/7")
