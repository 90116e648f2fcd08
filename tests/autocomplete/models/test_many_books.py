"""Books that a model feeds one for each value of a field, and labels that belong to other rows."""

from __future__ import annotations

import logging
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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
from tests.db.models import Box, Parcel, Shelf
from tests.fixtures.databases import alone

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shelves(redis: Redis) -> ModelBooks:
    """A book for each shelf, with its boxes."""
    return ModelBooks(Box, "name", by="shelf", name="shelf:{}")


@pytest.fixture
def places(redis: Redis) -> ModelBook:
    """On which shelf boxes stand, under the name of the shelf."""
    return ModelBook(Box, "shelf__name", name="places", id="name")


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


def test_each_value_has_a_book_and_a_row_that_moves_leaves_one_and_joins_the_other(
    shelves: ModelBooks, maps: Shelf, tools: Shelf
) -> None:
    Box.objects.create(name="black")
    box = Box.objects.create(name="blue", shelf=maps)
    assert found(AddressBook(f"shelf:{maps.pk}"), "bl") == [(str(box.pk), "blue")]
    assert AddressBookReader().names() == [f"shelf:{maps.pk}"]

    with transaction.atomic():
        box.shelf = tools
        box.save()
        assert (names(shelves, maps), names(shelves, tools)) == (["blue"], [])
    assert (names(shelves, maps), names(shelves, tools)) == ([], ["blue"])

    parcel = Parcel.objects.get(pk=box.pk)  # the rows of a proxy are rows
    parcel.shelf = maps
    parcel.save()
    assert (names(shelves, maps), names(shelves, tools)) == (["blue"], [])
    box.shelf = None
    box.save(update_fields=["shelf"])
    assert (names(shelves, maps), names(shelves, tools)) == ([], [])


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
    Box.objects.get(name="two").delete()
    box = Box.objects.get(name="one")
    box.name = "first"  # which is another id, and so another entry
    box.save()
    assert found(places.book, "charts") == [("first", "charts")]


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


def test_rows_whose_id_cannot_be_one_are_left_out(places: ModelBook, maps: Shelf) -> None:
    for name in ("a\tb", "", "c"):
        Box.objects.create(name=name, shelf=maps)

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


def test_the_value_is_at_the_end_of_the_name_and_the_longer_of_two_patterns_names_the_book(
    redis: Redis,
) -> None:
    ModelBooks(Group, "name", by="name", name="tenant:{}")
    ModelBooks(User, "username", by="pk", name="tenant:user:{}")

    assert books.feeding("tenant:user:7").model is User  # type: ignore[union-attr]
    assert books.feeding("tenant:user:x").model is Group  # type: ignore[union-attr]
    assert books.feeding("tenant:") is None
    for name in ("shelf", "{}", "shelf:{}:boxes", "{}:{}", ""):
        with pytest.raises(ImproperlyConfigured):
            ModelBooks(Box, "name", by="shelf", name=name)


def test_a_deleted_row_leaves_its_book_and_the_last_takes_it_along(
    shelves: ModelBooks, maps: Shelf, tools: Shelf, redis: Redis
) -> None:
    """Or each shelf that there ever was would leave an empty one."""
    box = Box.objects.create(name="blue", shelf=maps)
    brown = Box.objects.create(name="brown", shelf=maps)
    brown.shelf = tools  # which is not saved
    brown.delete()
    assert names(shelves, maps) == ["blue"]
    assert AddressBookReader().names() == [f"shelf:{maps.pk}"]

    box.shelf = tools
    box.save()
    assert AddressBookReader().names() == [f"shelf:{tools.pk}"]

    tools.delete()
    assert AddressBookReader().names() == []
    assert [key for key in redis.keys("*") if redis.ttl(key) == -1] == []


@pytest.mark.slow
@pytest.mark.parametrize("arena", ["postgres"], indirect=True)  # SQLite lets in one writer at a time
def test_each_book_is_what_the_table_is_whenever_all_have_written(arena: str, shelves: ModelBooks) -> None:
    """Everybody renames the same row; each moves, deletes and makes rows of his own."""
    writers, rounds = range(5), range(25)
    places = [Shelf.objects.using(arena).create(name=f"shelf {number}") for number in range(3)]
    shared = Box.objects.using(arena).create(name="box", shelf=places[0]).pk
    chances = [random.Random(writer) for writer in writers]
    owned: list[list[Box]] = [[] for _ in writers]

    def write(number: int, writer: int) -> None:
        chance, own, name = chances[writer], owned[writer], f"box {number} of {writer}"
        Box(pk=shared, name=name).save(using=arena, update_fields=["name"])
        if len(own) < 3:
            own.append(Box.objects.using(arena).create(name=f"{name} too", shelf=chance.choice(places)))
        elif chance.random() < 0.5:
            own[0].shelf = chance.choice([*places, None])
            own[0].save()
        else:
            own.pop().delete()

    with ThreadPoolExecutor(len(writers)) as pool:
        for number in rounds:
            for done in [pool.submit(alone(partial(write, number, writer))) for writer in writers]:
                done.result()
            for shelf in places:
                rows = Box.objects.using(arena).filter(shelf=shelf).values_list("pk", "name")
                told = [(str(pk), name) for pk, name in rows]
                assert sorted(found(shelves.of(shelf.pk), "box")) == sorted(told)
