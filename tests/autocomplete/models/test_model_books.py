"""Address books that a model feeds, one or one for each value of a field: by each committed write, and as a whole."""

import logging
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps.registry import Apps
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection, models, transaction
from django.db.models.deletion import Collector
from django.db.models.functions import Upper
from django.db.models.signals import post_save
from django.test.utils import CaptureQueriesContext, override_settings
from redis import Redis

from components.exceptions import BookNotFound, LoadSuperseded, RedisUnavailable, TaskCancelled
from components.services.autocomplete import AddressBook, AddressBookReader, feeding
from components.services.autocomplete import models as books
from components.services.autocomplete.access import Readers
from components.services.autocomplete.models import ModelBook, ModelBooks
from components.services.autocomplete.tasks import rebuild
from components.services.queues.policy import current_run
from tests.db.models import Bed, Box, Crate, Flower, Parcel, RaisedBed, Shelf, Stamp
from tests.fixtures.databases import Tenants, alone

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shelves(redis: Redis) -> ModelBook:
    """The names of shelves, but for hidden ones."""
    fed = ModelBook(Shelf, "name", rows=lambda: Shelf.objects.exclude(name__startswith="hidden"))
    fed.rebuild()
    return fed


def found(fed: ModelBook, prefix: str) -> list[tuple[str, str]]:
    return [(each.id, each.label) for each in fed.book.complete(prefix)]


def test_rows_of_other_models_are_still_deleted_in_one_query(shelves: ModelBook) -> None:
    deletion = Collector(using="default", origin=None)

    assert deletion.can_fast_delete(Crate.objects.all())
    assert not deletion.can_fast_delete(Shelf.objects.all())


def test_later_models_are_heeded_if_their_rows_are_in_the_book(shelves: ModelBook) -> None:
    class LateShelf(Shelf):
        class Meta:
            app_label = "db"
            apps = Apps()
            proxy = True

    class LateOther(models.Model):
        class Meta:
            app_label = "db"
            apps = Apps()

    listeners = [
        {each.__self__ for each in post_save._live_receivers(model)[0] if hasattr(each, "__self__")}
        for model in (LateShelf, LateOther)
    ]

    assert [shelves in each for each in listeners] == [True, False]


class Scroll(models.Model):
    title = models.CharField(max_length=20)
    shown = models.GeneratedField(
        expression=Upper("title"), output_field=models.CharField(max_length=20), db_persist=True
    )

    class Meta:
        app_label = "db"
        apps = Apps()


def test_a_label_that_the_database_makes_follows_its_fields(redis: Redis) -> None:
    fed = ModelBook(Scroll, "shown")
    with connection.schema_editor() as editor:
        editor.create_model(Scroll)
    scroll = Scroll.objects.create(title="map")
    scroll.title = "chart"
    scroll.save(update_fields=["title"])

    assert (found(fed, "m"), found(fed, "ch")) == ([], [(str(scroll.pk), "CHART")])
    with connection.schema_editor() as editor:
        editor.delete_model(Scroll)


def test_the_rows_of_a_child_follow_what_is_written_to_their_parents(redis: Redis) -> None:
    fed, related = ModelBook(RaisedBed, "name"), ModelBook(Flower, "bed__raisedbed__name", name="flowers")
    chosen = ModelBook(RaisedBed, "pk", name="chosen", rows=lambda: RaisedBed.objects.exclude(name=""))
    raised = RaisedBed.objects.create(name="roses")
    flower = Flower.objects.create(bed=raised)
    bed = Bed.objects.get(pk=raised.pk)
    bed.name = "tulips"
    bed.save(update_fields=["name"])
    assert found(fed, "t") == [(str(raised.pk), "tulips")]
    assert found(related, "t") == [(str(flower.pk), "tulips")]
    assert found(fed, "r") == found(related, "r") == []
    bed.name = ""
    bed.save()
    assert [found(each, "t") for each in (fed, related)] == [[], []]
    assert found(chosen, str(raised.pk)) == []


def test_a_row_is_found_from_its_commit_until_it_is_deleted(shelves: ModelBook) -> None:
    with transaction.atomic():
        shelf = Shelf.objects.create(name="Old Maps")
        assert found(shelves, "maps") == []
    key = str(shelf.pk)
    assert found(shelves, "maps") == [(key, "Old Maps")]

    with transaction.atomic():
        Shelf.objects.create(name="Maps of old")
        transaction.set_rollback(True)
    for name, shown in (("New Maps", [(key, "New Maps")]), ("hidden maps", []), ("Maps", [(key, "Maps")])):
        shelf.name = name
        shelf.save()
        assert found(shelves, "maps") == shown

    shelf.delete()
    assert found(shelves, "maps") == []


def test_a_key_that_the_database_makes_is_not_asked_for_before_it_is_made(redis: Redis) -> None:
    """Stamps are cached by another key, too."""
    words = ModelBook(Stamp, "word", id="word")
    with CaptureQueriesContext(connection) as queries:
        Stamp.objects.create(word="rare")

    assert queries[0]["sql"].startswith("INSERT")
    assert found(words, "rare") == [("rare", "rare")]


@pytest.mark.parametrize("arena", ["sqlite"], indirect=True)
def test_writes_to_another_database_do_not_change_a_book(shelves: ModelBook, arena: str) -> None:
    with override_settings(DATABASE_ROUTERS=[tenants := Tenants()]):
        mine = Shelf.objects.create(name="maps")
        tenants.alias = arena
        theirs = Shelf.objects.create(pk=mine.pk, name="tools")
        theirs.save()
        assert (found(shelves, "m"), shelves.rebuild()) == ([(str(mine.pk), "maps")], 1)
        other = ModelBook(Shelf, "name", name="tools", using=arena)
        Shelf.objects.create(name="hammer")

    assert [each.label for each in other.book.complete("h")] == ["hammer"]
    assert found(shelves, "m") == [(str(mine.pk), "maps")]


def test_of_two_writers_the_later_need_not_win(shelves: ModelBook, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf.objects.create(name="Maps")
    add, writes = shelves.book.add, iter(["Charts"])

    def overtaken(label: str, **options: Any) -> bool:
        """Another process commits and tells its change, just before this one tells the older one."""
        for newer in writes:
            Shelf.objects.filter(pk=shelf.pk).update(name=newer)
            add(newer, **options)
        return add(label, **options)

    monkeypatch.setattr(shelves.book, "add", overtaken)
    shelves.refresh(shelf.pk)

    assert found(shelves, "maps") == []
    assert found(shelves, "charts") == [(str(shelf.pk), "Charts")]


def test_labels_are_made_fit_and_rows_without_one_are_left_out(shelves: ModelBook) -> None:
    tabbed = Shelf.objects.create(name="a\tb\x07")
    Shelf.objects.create(name=" \u200b ")

    assert found(shelves, "a") == [(str(tabbed.pk), "a b")]
    assert shelves.rebuild() == 1


def test_a_write_holds_while_redis_is_away(
    shelves: ModelBook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*args: Any, **kwargs: Any) -> None:
        raise RedisUnavailable("Redis does not answer.")

    monkeypatch.setattr(shelves.book, "add", away)
    with caplog.at_level(logging.ERROR, "django.db.backends.base"):
        Shelf.objects.create(name="Maps")

    assert "Redis does not answer." in caplog.text
    assert Shelf.objects.count() == 1


def test_a_rebuilt_book_is_what_the_table_is(shelves: ModelBook) -> None:
    gone = Shelf.objects.create(name="Gone")
    Shelf.objects.bulk_create(Shelf(name=f"Shelf {number}") for number in range(20))
    Shelf.objects.filter(pk=gone.pk)._raw_delete("default")
    Shelf.objects.filter(name="Shelf 3").update(name="Charts")
    assert (len(found(shelves, "gone")), found(shelves, "charts")) == (1, [])

    out = StringIO()
    call_command("rebuildindex", stdout=out)

    assert out.getvalue().startswith("db.shelf: 20 names in ")
    assert (found(shelves, "gone"), len(found(shelves, "charts"))) == ([], 1)
    assert len(shelves.book.complete("shelf", limit=100)) == 19


def test_two_models_do_not_feed_one_book(shelves: ModelBook) -> None:
    with pytest.raises(ImproperlyConfigured):
        ModelBook(User, "username", name="db.shelf")


def test_searching_a_models_book_needs_permission_to_view_the_model_by_default(shelves: ModelBook) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    trusted = User.objects.create_user("trusted", is_staff=True)
    chief = User.objects.create_superuser("chief")
    its_type = ContentType.objects.get_for_model(Shelf)
    permission, _ = Permission.objects.get_or_create(codename="view_shelf", content_type=its_type)
    trusted.user_permissions.add(permission)
    outsider = User.objects.create_user("outsider")
    outsider.user_permissions.add(permission)
    ids = [str(user.pk) for user in (staff, trusted, chief, outsider)]

    assert [Readers().may_search(id, "db.shelf") for id in ids] == [False, True, True, False]
    assert [Readers().may_search(id, "db.shelf") for id in ("", "x", "999")] == [False] * 3
    assert not Readers().may_search(str(chief.pk), "guild:7")
    ModelBooks(Box, "name", by="shelf", name="shelf:{}")
    assert [Readers().may_search(id, "shelf:7") for id in ids] == [False, False, True, False]
    assert not Readers().may_search(str(chief.pk), "shelf:x")
    User.objects.update(is_active=False)
    assert not Readers().may_search(str(chief.pk), "db.shelf")


@contextmanager
def running(*, is_cancelled: bool = False) -> Iterator[list[tuple[Any, ...]]]:
    """Let the task run as in a worker; yields what it says."""
    told: list[tuple[Any, ...]] = []
    token = current_run.set(
        SimpleNamespace(is_cancelled=is_cancelled, report=lambda *said: told.append(said))
    )
    try:
        yield told
    finally:
        current_run.reset(token)


@pytest.fixture
def fed(redis: Redis) -> ModelBook:
    """Two rows, and their book, which is not loaded."""
    Shelf.objects.bulk_create(Shelf(name=name) for name in ("Maps", "Charts"))
    return ModelBook(Shelf, "name")


def test_the_task_tells_how_far_it_is_and_how_many_entries_there_are(fed: ModelBook) -> None:
    with running() as told:
        assert rebuild.call("db.shelf") == 2

    assert told[-1] == (2, None, "db.shelf")
    assert fed.book.count() == 2
    with pytest.raises(BookNotFound):
        rebuild.call("gone")


def test_a_task_that_is_cancelled_leaves_the_book_as_it_was(fed: ModelBook) -> None:
    fed.book.add("Old Maps", id=0)

    with running(is_cancelled=True), pytest.raises(TaskCancelled):
        rebuild.call("db.shelf")

    assert found(fed, "maps") == [("0", "Old Maps")]


def test_a_task_that_a_later_load_ends_fails_only_with_many_books(
    fed: ModelBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def superseded(progress: Callable[[int], None]) -> int:
        raise LoadSuperseded("Another load began.")

    many = ModelBooks(Box, "name", by="shelf", name="shelf:{}")
    for each in (fed, many):
        monkeypatch.setattr(each, "rebuild", superseded)

    assert rebuild.call("db.shelf") is None
    with pytest.raises(LoadSuperseded):  # so that it is tried again
        rebuild.call("shelf:{}")


@pytest.fixture
def of_shelves(redis: Redis) -> ModelBooks:
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


def found_in(book: AddressBook, prefix: str) -> list[tuple[str, str]]:
    try:
        return [(each.id, each.label) for each in book.complete(prefix, limit=100)]
    except BookNotFound:
        return []


def names(fed: ModelBooks, shelf: Shelf) -> list[str]:
    return [label for _, label in found_in(fed.of(shelf.pk), "b")]


def test_a_row_that_moves_goes_to_another_book(of_shelves: ModelBooks, maps: Shelf, tools: Shelf) -> None:
    Box.objects.create(name="black")
    box = Box.objects.create(name="blue", shelf=maps)
    assert found_in(AddressBook(f"shelf:{maps.pk}"), "bl") == [(str(box.pk), "blue")]
    assert AddressBookReader().names() == [f"shelf:{maps.pk}"]

    with transaction.atomic():
        box.shelf = tools
        box.save()
        assert (names(of_shelves, maps), names(of_shelves, tools)) == (["blue"], [])
    assert (names(of_shelves, maps), names(of_shelves, tools)) == ([], ["blue"])

    parcel = Parcel.objects.get(pk=box.pk)  # the rows of a proxy are rows
    parcel.shelf = maps
    parcel.save()
    assert (names(of_shelves, maps), names(of_shelves, tools)) == (["blue"], [])
    box.shelf = None
    box.save(update_fields=["shelf"])
    assert (names(of_shelves, maps), names(of_shelves, tools)) == ([], [])


def test_a_write_of_other_fields_asks_nothing(of_shelves: ModelBooks, maps: Shelf) -> None:
    box = Box.objects.create(name="blue", shelf=maps)
    of_shelves.of(maps.pk).remove(box.pk)

    with CaptureQueriesContext(connection) as queries:
        box.save(update_fields=["content"])

    assert len(queries) == 1
    assert names(of_shelves, maps) == []


def test_a_new_name_of_another_row_is_noticed(places: ModelBook, maps: Shelf) -> None:
    for name in ("one", "two"):
        Box.objects.create(name=name, shelf=maps)
    assert sorted(found_in(places.book, "maps")) == [("one", "maps"), ("two", "maps")]

    maps.name = "charts"
    maps.save()

    assert (found_in(places.book, "maps"), len(found_in(places.book, "charts"))) == ([], 2)
    Box.objects.get(name="two").delete()
    box = Box.objects.get(name="one")
    box.name = "first"  # which is another id, and so another entry
    box.save()
    assert found_in(places.book, "charts") == [("first", "charts")]


def test_one_id_of_several_rows_is_one_entry_until_the_last_goes(redis: Redis) -> None:
    fed = ModelBook(Box, "name", name="contents", id="content")
    old = Box.objects.create(name="old", content=7)
    new = Box.objects.create(name="new", content=7)
    assert fed.rebuild() == 2
    assert (found_in(fed.book, "old"), found_in(fed.book, "new")) == ([], [("7", "new")])

    new.delete()
    assert (found_in(fed.book, "old"), found_in(fed.book, "new")) == ([("7", "old")], [])
    old.delete()
    assert fed.book.count() == 0


def test_rows_whose_id_cannot_be_one_are_left_out(places: ModelBook, maps: Shelf) -> None:
    for name in ("a\tb", "", "c"):
        Box.objects.create(name=name, shelf=maps)

    assert found_in(places.book, "maps") == [("c", "maps")]
    assert places.rebuild() == 1


def test_one_write_that_changes_very_many_rows_leaves_the_rest_to_a_rebuild(
    places: ModelBook, maps: Shelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feeding, "_MOST", 2)
    Box.objects.bulk_create(Box(name=name, shelf=maps) for name in ("one", "two", "three"))

    with caplog.at_level(logging.WARNING):
        maps.save()
    assert "rebuildindex" in caplog.text
    assert len(found_in(places.book, "maps")) == 2
    assert places.rebuild() == 3


def test_all_books_are_rebuilt_and_empty_ones_go(of_shelves: ModelBooks, maps: Shelf, tools: Shelf) -> None:
    stale = Box.objects.create(name="bronze", shelf=tools)
    Box.objects.filter(pk=stale.pk)._raw_delete("default")
    Box.objects.bulk_create(Box(name=name, shelf=maps) for name in ("blue", "brown"))
    AddressBook("shelf:x").add("beside", id=1)
    told: list[int] = []

    assert of_shelves.rebuild(told.append) == 2

    assert (names(of_shelves, maps), names(of_shelves, tools)) == (["blue", "brown"], [])
    assert AddressBookReader().names() == [f"shelf:{maps.pk}", "shelf:x"]
    assert told[-1] == 2


def test_a_person_who_joins_while_an_empty_book_goes_is_in_it(
    of_shelves: ModelBooks, maps: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase = AddressBook.erase

    def overtaken(book: AddressBook) -> None:
        Box.objects.create(name="blue", shelf=maps)
        erase(book)

    monkeypatch.setattr(AddressBook, "erase", overtaken)

    assert of_shelves.rebuild_one(maps.pk) == 1
    assert names(of_shelves, maps) == ["blue"]


def test_the_command_rebuilds_one_of_them_or_all(of_shelves: ModelBooks, maps: Shelf, tools: Shelf) -> None:
    Box.objects.bulk_create(Box(name=each.name[::-1] + "b", shelf=each) for each in (maps, tools))
    out = StringIO()

    call_command("rebuildindex", f"shelf:{maps.pk}", stdout=out)
    assert out.getvalue().startswith(f"shelf:{maps.pk}: 1 name in ")
    assert (of_shelves.of(maps.pk).count(), of_shelves.of(tools.pk).count()) == (1, 0)

    call_command("rebuildindex", stdout=out)
    assert "shelf:{}: 2 names in " in out.getvalue()
    assert of_shelves.of(tools.pk).count() == 1
    for name in ("shelf:", "shelf:x", "shelf:01", "books"):
        with pytest.raises(CommandError) as refused:
            call_command("rebuildindex", name, stdout=out)
        assert refused.value.returncode == 2


def test_the_value_ends_the_name_and_the_longer_of_two_patterns_names_the_book(redis: Redis) -> None:
    ModelBooks(Group, "name", by="name", name="tenant:{}")
    ModelBooks(User, "username", by="pk", name="tenant:user:{}")

    assert books.feeding("tenant:user:7").model is User  # type: ignore[union-attr]
    assert books.feeding("tenant:user:x").model is Group  # type: ignore[union-attr]
    assert books.feeding("tenant:") is None
    for name in ("shelf", "{}", "shelf:{}:boxes", "{}:{}", ""):
        with pytest.raises(ImproperlyConfigured):
            ModelBooks(Box, "name", by="shelf", name=name)


def test_the_last_row_takes_its_book(of_shelves: ModelBooks, maps: Shelf, tools: Shelf, redis: Redis) -> None:
    """Or each shelf that there ever was would leave an empty one."""
    box = Box.objects.create(name="blue", shelf=maps)
    brown = Box.objects.create(name="brown", shelf=maps)
    brown.shelf = tools  # which is not saved
    brown.delete()
    assert names(of_shelves, maps) == ["blue"]
    assert AddressBookReader().names() == [f"shelf:{maps.pk}"]

    box.shelf = tools
    box.save()
    assert AddressBookReader().names() == [f"shelf:{tools.pk}"]

    tools.delete()
    assert AddressBookReader().names() == []
    assert [key for key in redis.keys("*") if redis.ttl(key) == -1] == []


@pytest.mark.slow
@pytest.mark.parametrize("arena", ["postgres"], indirect=True)  # SQLite lets in one writer at a time
def test_books_equal_the_table(arena: str, of_shelves: ModelBooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody renames the same row; each moves, deletes and makes rows of his own."""
    monkeypatch.setattr(of_shelves, "_using", arena)
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
                assert sorted(found_in(of_shelves.of(shelf.pk), "box")) == sorted(told)
