"""Books that a model feeds, while several write to its table at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from redis import Redis

from components.services.autocomplete import models as books
from components.services.autocomplete.models import ModelBooks
from tests.autocomplete.models.test_many_books import found
from tests.autocomplete.models.test_model_books import forget
from tests.db.models import Box, Shelf
from tests.fixtures.databases import alone

pytestmark = pytest.mark.slow

WRITERS, ROUNDS = 5, 25


@pytest.fixture
def shelves(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelBooks]:
    monkeypatch.setattr(books, "_fed", {})
    fed = ModelBooks(Box, "name", by="shelf", name="shelf:{}")
    yield fed
    forget(fed)


@pytest.mark.parametrize("arena", ["postgres"], indirect=True)  # SQLite lets in one writer at a time
def test_each_book_is_what_the_table_is_whenever_all_have_written(arena: str, shelves: ModelBooks) -> None:
    """Everybody renames the same row; each moves, deletes and makes rows of his own."""
    places = [Shelf.objects.using(arena).create(name=f"shelf {number}") for number in range(3)]
    shared = Box.objects.using(arena).create(name="box", shelf=places[0]).pk
    chances = [random.Random(writer) for writer in range(WRITERS)]
    owned: list[list[Box]] = [[] for _ in range(WRITERS)]

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

    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(ROUNDS):
            for done in [pool.submit(alone(partial(write, number, writer))) for writer in range(WRITERS)]:
                done.result()
            for shelf in places:
                rows = Box.objects.using(arena).filter(shelf=shelf).values_list("pk", "name")
                told = [(str(pk), name) for pk, name in rows]
                assert sorted(found(shelves.of(shelf.pk), "box")) == sorted(told)
