"""Address books that a model feeds: by each write that is committed, and as a whole."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models.deletion import Collector
from django.db.models.signals import class_prepared, post_delete, post_save, pre_delete, pre_save
from redis import Redis

from components.exceptions import RedisUnavailable
from components.services.autocomplete import models as books
from components.services.autocomplete.access import Readers
from components.services.autocomplete.feeding import Feed
from components.services.autocomplete.models import ModelBook
from tests.db.models import Crate, Shelf

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shelves(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelBook]:
    """The names of shelves, but for hidden ones."""
    monkeypatch.setattr(books, "_fed", {})
    fed = ModelBook(Shelf, "name", rows=lambda: Shelf.objects.exclude(name__startswith="hidden"))
    fed.rebuild()
    yield fed
    forget(fed)


def forget(fed: Feed) -> None:
    """Let writes be told no more."""
    told_by = [
        signal.disconnect(sender=sender, dispatch_uid=fed.uid)
        for sender in apps.get_models()
        for signal in (pre_save, pre_delete, post_save, post_delete)
    ]
    assert any(told_by)
    assert class_prepared.disconnect(dispatch_uid=fed.uid)


def found(fed: ModelBook, prefix: str) -> list[tuple[str, str]]:
    return [(each.id, each.label) for each in fed.book.complete(prefix)]


def test_rows_of_other_models_are_still_deleted_in_one_query(shelves: ModelBook) -> None:
    deletion = Collector(using="default", origin=None)

    assert deletion.can_fast_delete(Crate.objects.all())
    assert not deletion.can_fast_delete(Shelf.objects.all())


def test_a_row_is_found_from_its_commit_until_it_is_deleted(shelves: ModelBook) -> None:
    with transaction.atomic():
        shelf = Shelf.objects.create(name="Old Maps")
        assert found(shelves, "maps") == []
    key = str(shelf.pk)
    assert found(shelves, "maps") == [(key, "Old Maps")]

    shelf.name = "New Maps"
    shelf.save()
    assert (found(shelves, "old"), found(shelves, "new")) == ([], [(key, "New Maps")])

    shelf.delete()
    assert found(shelves, "maps") == []


def test_a_rolled_back_write_is_not_announced(shelves: ModelBook) -> None:
    with transaction.atomic():
        Shelf.objects.create(name="Maps")
        transaction.set_rollback(True)

    assert found(shelves, "maps") == []


def test_a_row_that_does_not_belong_there_any_more_is_taken_out(shelves: ModelBook) -> None:
    shelf = Shelf.objects.create(name="Maps")

    shelf.name = "hidden maps"
    shelf.save()

    assert found(shelves, "maps") == []


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


def test_a_command_for_a_book_that_no_model_feeds_says_which_are_fed(shelves: ModelBook) -> None:
    with pytest.raises(CommandError, match=r"No model feeds guild:7\. Models feed: db\.shelf\.") as raised:
        call_command("rebuildindex", "guild:7", stdout=StringIO())
    assert raised.value.returncode == 2


def test_a_project_without_such_books_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_fed", {})
    out = StringIO()

    call_command("rebuildindex", stdout=out)

    assert "No model feeds a book" in out.getvalue()


def test_two_models_do_not_feed_one_book(shelves: ModelBook) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"Two models feed the book 'db\.shelf'"):
        ModelBook(User, "username", name="db.shelf")


def test_searching_a_models_book_needs_permission_to_view_the_model_by_default(shelves: ModelBook) -> None:
    staff = User.objects.create_user("staff", is_staff=True)
    trusted = User.objects.create_user("trusted", is_staff=True)
    chief = User.objects.create_superuser("chief")
    permission = Permission.objects.get_or_create(
        codename="view_shelf", content_type=books_content_type(), defaults={"name": "Can view shelf"}
    )[0]
    trusted.user_permissions.add(permission)
    outsider = User.objects.create_user("outsider")
    outsider.user_permissions.add(permission)
    ids = [str(user.pk) for user in (staff, trusted, chief, outsider)]

    assert [Readers().may_search(id, "db.shelf") for id in ids] == [False, True, True, False]
    assert [Readers().may_search(id, "db.shelf") for id in ("", "x", "999")] == [False] * 3
    assert not Readers().may_search(str(chief.pk), "guild:7")
    User.objects.update(is_active=False)
    assert not Readers().may_search(str(chief.pk), "db.shelf")


def books_content_type() -> Any:
    from django.contrib.contenttypes.models import ContentType

    return ContentType.objects.get_for_model(Shelf)
