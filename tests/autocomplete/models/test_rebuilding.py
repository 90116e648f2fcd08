"""The task that rebuilds an address book: what it says while it runs, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from components.exceptions import BookNotFound, LoadSuperseded, TaskCancelled
from components.services.autocomplete import models as books
from components.services.autocomplete.models import ModelBook, ModelBooks
from components.services.autocomplete.tasks import rebuild
from components.services.queues.policy import current_run
from tests.autocomplete.models.test_model_books import forget
from tests.db.models import Box, Shelf

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


@dataclass
class Run:
    """What a worker lets the task say and ask."""

    is_cancelled: bool = False
    told: list[tuple[float, float | None, str]] = field(default_factory=list)

    def report(self, done: float, total: float | None, note: str) -> None:
        self.told.append((done, total, note))


@contextmanager
def running(run: Run) -> Iterator[None]:
    token = current_run.set(run)
    try:
        yield
    finally:
        current_run.reset(token)


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelBook]:
    """Two rows, and their book, which is not loaded."""
    monkeypatch.setattr(books, "_fed", {})
    made = ModelBook(Shelf, "name")
    Shelf.objects.bulk_create(Shelf(name=name) for name in ("Maps", "Charts"))
    yield made
    forget(made)


def superseded(progress: Callable[[int], None]) -> int:
    raise LoadSuperseded("Another load began.")


def test_it_tells_how_far_it_is_and_how_many_entries_there_are(fed: ModelBook) -> None:
    run = Run()
    with running(run):
        assert rebuild.call("db.shelf") == 2

    assert run.told[-1] == (2, None, "db.shelf")
    assert fed.book.count() == 2


def test_one_that_is_cancelled_leaves_the_book_as_it_was(fed: ModelBook) -> None:
    fed.book.add("Old Maps", id=0)

    with running(Run(is_cancelled=True)), pytest.raises(TaskCancelled):
        rebuild.call("db.shelf")

    assert [each.label for each in fed.book.complete("maps")] == ["Old Maps"]


def test_one_that_a_later_load_ends_is_no_failure(fed: ModelBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fed, "rebuild", superseded)

    assert rebuild.call("db.shelf") is None


def test_loading_one_book_drops_no_other(fed: ModelBook, monkeypatch: pytest.MonkeyPatch) -> None:
    many = ModelBooks(Box, "name", by="shelf", name="shelf:{}")
    monkeypatch.setattr(many, "rebuild", superseded)

    with pytest.raises(LoadSuperseded):  # so that it is tried again
        rebuild.call("shelf:{}")

    forget(many)


def test_a_book_that_is_fed_no_more_is_an_error_in_words(fed: ModelBook) -> None:
    with pytest.raises(BookNotFound):
        rebuild.call("gone")
