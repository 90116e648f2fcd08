"""Books that a model feeds one for each value of a field, and labels that belong to other rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import StringIO

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from redis import Redis

from components.exceptions import BookNotFound
from components.services.autocomplete import AddressBook, AddressBookReader, feeding
from components.services.autocomplete import models as books
from components.services.autocomplete.models import ModelBook, ModelBooks
from tests.autocomplete.models.test_model_books import forget
from tests.db.models import Box, Parcel, Shelf

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def none_declared(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_fed", {})


@pytest.fixture
def shelves() -> Iterator[ModelBooks]:
    """A book for each shelf, with its boxes."""
    fed = ModelBooks(Box, "name", by="shelf", name="shelf:{}")
    yield fed
    forget(fed)


@pytest.fixture
def places() -> Iterator[ModelBook]:
    """On which shelf boxes stand, under the name of the shelf."""
    fed = ModelBook(Box, "shelf__name", name="places", id="name")
    yield fed
    forget(fed)


@pytest.fixture
def maps() -> Shelf:
    return Shelf.objects.create(name="maps")


@pytest.fixture
def tools() -> Shelf:
    return Shelf.objects.create(name="tools")


def found(book: AddressBook, prefix: str) -> list[tuple[str, str]]:
    try:
        return [(each.id, each.label) for each in book.complete(prefix, limit=100)]
    except BookNotFound:
        return []


def names(fed: ModelBooks, shelf: Shelf) -> list[str]:
    return [label for _, label in found(fed.of(shelf.pk), "b")]


def test_each_value_has_a_book_of_its_own(shelves: ModelBooks, maps: Shelf, tools: Shelf) -> None:
    old = Box.objects.create(name="blue", shelf=maps)
    Box.objects.create(name="brown", shelf=tools)
    Box.objects.create(name="black")

    assert (names(shelves, maps), names(shelves, tools)) == (["blue"], ["brown"])
    assert found(AddressBook(f"shelf:{maps.pk}"), "bl") == [(str(old.pk), "blue")]
    assert AddressBookReader().names() == sorted([f"shelf:{maps.pk}", f"shelf:{tools.pk}"])


def test_a_row_that_moves_leaves_one_book_and_joins_the_other(
    shelves: ModelBooks, maps: Shelf, tools: Shelf
) -> None:
    box = Box.objects.create(name="blue", shelf=maps)

    with transaction.atomic():
        box.shelf = tools
        box.save()
        assert (names(shelves, maps), names(shelves, tools)) == (["blue"], [])
    assert (names(shelves, maps), names(shelves, tools)) == ([], ["blue"])

    box.shelf = None
    box.save(update_fields=["shelf"])
    assert (names(shelves, maps), names(shelves, tools)) == ([], [])


def test_a_deleted_row_leaves_the_book_that_it_was_in(shelves: ModelBooks, maps: Shelf, tools: Shelf) -> None:
    box = Box.objects.create(name="blue", shelf=maps)
    Box.objects.create(name="brown", shelf=maps)

    box.shelf = tools  # which is not saved
    box.delete()
    assert names(shelves, maps) == ["brown"]
    maps.delete()
    assert names(shelves, maps) == []


def test_rows_of_a_proxy_are_rows(shelves: ModelBooks, maps: Shelf, tools: Shelf) -> None:
    parcel = Parcel.objects.create(name="blue", shelf=maps)
    parcel.shelf = tools
    parcel.save()

    assert (names(shelves, maps), names(shelves, tools)) == ([], ["blue"])


def test_a_write_of_other_fields_asks_nothing(shelves: ModelBooks, maps: Shelf) -> None:
    box = Box.objects.create(name="blue", shelf=maps)
    shelves.of(maps.pk).remove(box.pk)

    with CaptureQueriesContext(connection) as queries:
        box.save(update_fields=["content"])

    assert len(queries) == 1
    assert names(shelves, maps) == []


def test_a_new_name_of_another_row_is_noticed(places: ModelBook, maps: Shelf) -> None:
    for name in ("one", "two"):
        Box.objects.create(name=name, shelf=maps)
    assert sorted(found(places.book, "maps")) == [("one", "maps"), ("two", "maps")]

    maps.name = "charts"
    maps.save()

    assert (found(places.book, "maps"), len(found(places.book, "charts"))) == ([], 2)


def test_another_id_is_another_entry(places: ModelBook, maps: Shelf) -> None:
    box = Box.objects.create(name="one", shelf=maps)

    box.name = "first"
    box.save()

    assert found(places.book, "m") == [("first", "maps")]


def test_one_id_of_several_rows_is_one_entry_until_the_last_goes(redis: Redis) -> None:
    fed = ModelBook(Box, "name", name="contents", id="content")
    old = Box.objects.create(name="old", content=7)
    new = Box.objects.create(name="new", content=7)
    assert fed.rebuild() == 2
    assert (found(fed.book, "old"), found(fed.book, "new")) == ([], [("7", "new")])

    new.delete()
    assert (found(fed.book, "old"), found(fed.book, "new")) == ([("7", "old")], [])
    old.delete()
    assert fed.book.count() == 0
    forget(fed)


def test_rows_whose_id_cannot_be_one_are_left_out(places: ModelBook, maps: Shelf) -> None:
    Box.objects.create(name="a\tb", shelf=maps)
    Box.objects.create(name="", shelf=maps)
    Box.objects.create(name="c", shelf=maps)

    assert found(places.book, "maps") == [("c", "maps")]
    assert places.rebuild() == 1


def test_one_write_that_changes_very_many_rows_leaves_the_rest_to_a_rebuild(
    places: ModelBook, maps: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feeding, "_MOST", 2)
    Box.objects.bulk_create(Box(name=name, shelf=maps) for name in ("one", "two", "three"))

    with caplog.at_level(logging.WARNING):
        maps.save()

    assert "rebuildindex" in caplog.text
    assert len(found(places.book, "maps")) == 2
    assert places.rebuild() == 3


def test_all_books_are_rebuilt_and_those_of_no_row_go(shelves: ModelBooks, maps: Shelf, tools: Shelf) -> None:
    stale = Box.objects.create(name="bronze", shelf=tools)
    Box.objects.filter(pk=stale.pk)._raw_delete("default")
    Box.objects.bulk_create(Box(name=name, shelf=maps) for name in ("blue", "brown"))
    AddressBook("shelf:x").add("beside", id=1)
    told: list[int] = []

    assert shelves.rebuild(told.append) == 2

    assert (names(shelves, maps), names(shelves, tools)) == (["blue", "brown"], [])
    assert AddressBookReader().names() == [f"shelf:{maps.pk}", "shelf:x"]
    assert told[-1] == 2


def test_a_person_who_joins_while_an_empty_book_goes_is_in_it(
    shelves: ModelBooks, maps: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase = AddressBook.erase

    def overtaken(book: AddressBook) -> None:
        Box.objects.create(name="blue", shelf=maps)
        erase(book)

    monkeypatch.setattr(AddressBook, "erase", overtaken)

    assert shelves.rebuild_one(maps.pk) == 1
    assert names(shelves, maps) == ["blue"]


def test_the_command_rebuilds_one_of_them_or_all(shelves: ModelBooks, maps: Shelf, tools: Shelf) -> None:
    Box.objects.bulk_create(Box(name=each.name[::-1] + "b", shelf=each) for each in (maps, tools))
    out = StringIO()

    call_command("rebuildindex", f"shelf:{maps.pk}", stdout=out)
    assert out.getvalue().startswith(f"shelf:{maps.pk}: 1 names in ")
    assert (shelves.of(maps.pk).count(), shelves.of(tools.pk).count()) == (1, 0)

    call_command("rebuildindex", stdout=out)
    assert "shelf:{}: 2 names in " in out.getvalue()
    assert shelves.of(tools.pk).count() == 1
    for name in ("shelf:", "shelf:x", "shelf:01", "books"):
        with pytest.raises(CommandError) as refused:
            call_command("rebuildindex", name, stdout=out)
        assert refused.value.returncode == 2


def test_the_longer_of_two_matching_patterns_names_the_book(redis: Redis) -> None:
    tenants = ModelBooks(Group, "name", by="name", name="tenant:{}")
    users = ModelBooks(User, "username", by="pk", name="tenant:user:{}")

    assert books.feeding("tenant:user:7").model is User  # type: ignore[union-attr]
    assert books.feeding("tenant:user:x").model is Group  # type: ignore[union-attr]
    assert books.feeding("tenant:") is None
    forget(tenants)
    forget(users)


@pytest.mark.parametrize("name", ["shelf", "{}", "shelf:{}:boxes", "{}:{}", ""])
def test_the_value_stands_at_the_end_of_the_name(name: str) -> None:
    with pytest.raises(ImproperlyConfigured):
        ModelBooks(Box, "name", by="shelf", name=name)


def test_the_last_row_takes_its_book_along(
    shelves: ModelBooks, maps: Shelf, tools: Shelf, redis: Redis
) -> None:
    """Or each shelf that there ever was would leave an empty one."""
    box = Box.objects.create(name="blue", shelf=maps)
    Box.objects.create(name="brown", shelf=maps)
    Box.objects.get(name="brown").delete()
    assert AddressBookReader().names() == [f"shelf:{maps.pk}"]

    box.shelf = tools
    box.save()
    assert AddressBookReader().names() == [f"shelf:{tools.pk}"]

    tools.delete()
    assert AddressBookReader().names() == []
    assert [key for key in redis.keys("*") if redis.ttl(key) == -1] == []
