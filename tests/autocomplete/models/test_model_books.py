"""Address books that a model feeds: by each write that is committed, and as a whole."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps.registry import Apps
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.models.deletion import Collector
from django.db.models.signals import post_save
from django.test.utils import CaptureQueriesContext
from redis import Redis

from components.exceptions import BookNotFound, LoadSuperseded, RedisUnavailable, TaskCancelled
from components.services.autocomplete.access import Readers
from components.services.autocomplete.models import ModelBook, ModelBooks
from components.services.autocomplete.tasks import rebuild
from components.services.queues.policy import current_run
from tests.db.models import Box, Crate, Shelf, Stamp

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


def test_of_models_that_are_made_later_those_are_heeded_whose_rows_are_in_the_book(
    shelves: ModelBook,
) -> None:
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


def test_of_two_writers_the_later_caller_need_not_win(
    shelves: ModelBook, monkeypatch: pytest.MonkeyPatch
) -> None:
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


# The task that rebuilds a book


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


def test_a_task_that_a_later_load_ends_is_no_failure_unless_it_loads_many_books(
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
