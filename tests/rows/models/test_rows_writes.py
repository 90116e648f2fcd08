"""Which rows a write changes, and when the cache is told: parents, children, proxies, renamed keys, savepoints."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps.registry import Apps
from django.contrib.sessions.models import Session
from django.core import serializers
from django.db import connection, models, transaction
from django.db.models import QuerySet
from django.db.models.functions import Lower
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save
from pytest_django import DjangoAssertNumQueries as Queries
from redis import Redis

from components.services.rows import Loader, RowReader
from components.services.rows.models import CachedRow, CachedRows, Caching, cached_rows, writes
from components.services.rows.models.writes import Writes
from components.services.rows.worker import RowWorker
from tests.db.models import Bed, Colour, Flower, RaisedBed, Token, Vase, Ware

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

APPS = Apps()


class Elsewhere(models.Model):
    """A model of another registry, whose table is made by the test that wants it."""

    class Meta:
        abstract = True
        app_label = "garden"
        apps = APPS


class Plant(Elsewhere):
    name = models.SlugField(unique=True)
    height = models.IntegerField(default=1)


class Tree(Plant):
    rings = models.IntegerField(default=0)


class Palm(Plant):
    """A child whose primary key is not its parent's."""

    number = models.IntegerField(primary_key=True)
    plant = models.OneToOneField(Plant, on_delete=models.CASCADE, parent_link=True)


class Oak(Tree):
    class Meta(Elsewhere.Meta):
        proxy = True


@contextmanager
def tables_of(*kinds: type[models.Model]) -> Iterator[None]:
    with connection.schema_editor() as editor:
        for model in kinds:
            editor.create_model(model)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for model in reversed(kinds):
                editor.delete_model(model)


@pytest.fixture
def garden() -> Iterator[None]:
    with tables_of(Plant, Tree, Palm):
        yield


PLANTS, TREES, OAKS = (CachedRows(model) for model in (Plant, Tree, Oak))
PALMS = CachedRows(Palm)
TREES_BY_NAME = CachedRows(Tree, key="name", name="trees")


def is_cached(rows: CachedRows, key: Any) -> bool:
    was = rows.cache.get(rows.key(key)) is not None
    rows.get(key)
    return was


class Herb(Elsewhere):
    """Its keys are stored as something else than what was written, or compared without case."""

    name = models.CharField(max_length=20, unique=True, db_collation="NOCASE")
    colour = Colour(max_length=20, unique=True)
    label = models.GeneratedField(
        expression=Lower("name"), output_field=models.CharField(max_length=20), db_persist=True, unique=True
    )


@pytest.mark.parametrize(("key", "asked"), [("name", "MINT"), ("colour", "Green"), ("label", "mint")])
def test_absence_is_forgotten_under_the_key_that_was_asked_for(key: str, asked: str) -> None:
    rows = CachedRows(Herb, key=key, name=f"herbs-by-{key}")
    with tables_of(Herb):
        assert rows.get(asked) is None
        herb = Herb.objects.create(name="Mint", colour="green")
        assert rows.get(asked).name == "Mint"  # type: ignore[union-attr]
        herb.name = "Sage"
        herb.save()
        found = rows.get(asked)
        assert found.name == "Sage" if key == "colour" else found is None  # type: ignore[union-attr]


def test_a_write_of_a_child_or_a_proxy_changes_the_row_of_its_parent(garden: None) -> None:
    for plant in (Tree(name="elm"), Oak(name="oak"), Palm(name="coco", number=1_000)):
        plant.save()
        assert not is_cached(PLANTS, plant.id)
        assert is_cached(PLANTS, plant.id)

        plant.height = 2
        plant.save()

        assert not is_cached(PLANTS, plant.id)
        assert PLANTS.get(plant.id).height == 2  # type: ignore[union-attr]
        number = plant.id
        plant.delete()
        assert PLANTS.get(number) is None


def test_a_write_of_a_parent_changes_the_rows_of_its_children_and_their_proxies(garden: None) -> None:
    elm, palm = Tree.objects.create(name="elm"), Palm.objects.create(name="coco", number=1_000)
    for rows, key, pk in (
        (TREES, elm.pk, elm.pk),
        (OAKS, elm.pk, elm.pk),
        (TREES_BY_NAME, "elm", elm.pk),
        (PALMS, 1_000, palm.plant_id),
    ):
        is_cached(rows, key)
        plant = Plant.objects.get(pk=pk)
        plant.height += 1

        plant.save()

        assert not is_cached(rows, key), rows.name
        assert rows.get(key).height == plant.height  # type: ignore[union-attr]


def test_rows_whose_key_is_renamed_not_loaded_or_none_are_known(caplog: pytest.LogCaptureFixture) -> None:
    token = Token.objects.create(word="a")
    assert (Token.cached.get("a") is None, Token.cached.get("b") is None) == (False, True)

    token.word = "b"
    token.save()
    assert (Token.cached.get("a") is None, Token.cached.get("b") is None) == (True, False)
    Token.objects.defer("word").get().delete()
    assert Token.cached.get("b") is None

    Token.objects.create(word="")
    Token.objects.get(word="").delete()
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("field", ["bed", "plot", "spot", "corner", "vase", "pot", "graft"])
def test_rows_that_refer_to_what_is_deleted_are_reported(field: str) -> None:
    """The deletion sets their columns, without a signal of theirs; that of corner as a database may by itself."""
    kinds: dict[str, type[models.Model]] = {"vase": Vase, "pot": Vase, "graft": Flower}
    target = kinds.get(field, RaisedBed)._default_manager.create()
    flower, other = (Flower.objects.create(**{field: each}) for each in (target, None))
    row = Flower.cached.get(flower.pk)
    assert getattr(row, f"{field}_id") == target.pk
    assert Flower.cached.get(other.pk)

    with transaction.atomic():
        target.delete()
        if field == "corner":
            Flower.objects.update(corner=None)
        assert Flower.cached.cache.get(flower.pk) is not None, "it is told before the commit"

    row = Flower.cached.get(flower.pk)
    assert row is None if field == "pot" else getattr(row, f"{field}_id") is None
    assert is_cached(Flower.cached, other.pk)


def test_of_very_many_rows_that_refer_some_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writes, "MOST_REFERRING", 2)
    bed = Bed.objects.create()
    Flower.objects.bulk_create(Flower(bed=bed) for _ in range(3))
    Flower.cached.get_many(pks := list(Flower.objects.values_list("pk", flat=True)))
    Bed.objects.all().delete()
    assert sorted(is_cached(Flower.cached, pk) for pk in pks) == [False, False, True]
    assert "More than 2 rows of db.flower refer to the deleted db.Bed" in caplog.text


def test_writes_of_other_models_are_not_listened_to() -> None:
    """Django deletes rows in one query only where nobody listens."""
    for signal in (pre_save, pre_delete, post_save, post_delete):
        listeners, _ = signal._live_receivers(Session)
        assert not [each for each in listeners if isinstance(getattr(each, "__self__", None), Writes)]


def test_a_rolled_back_savepoint_sends_nothing() -> None:
    kept, undone = (Ware.objects.create(name=name, stock=1) for name in ("kept", "undone"))
    Ware.cached.get_many([kept.pk, undone.pk])

    with transaction.atomic():
        kept.save()
        with transaction.atomic():
            undone.save()
            transaction.set_rollback(True)
        assert Ware.cached.cache.get(kept.pk) is not None

    assert not is_cached(Ware.cached, kept.pk)
    assert is_cached(Ware.cached, undone.pk)


def test_loading_a_fixture_invalidates_rows() -> None:
    ware, token = Ware.objects.create(name="sword", stock=1), Token.objects.create(word="a")
    text = serializers.serialize("json", [ware, token]).replace('"stock": 1', '"stock": 2')
    assert Ware.cached.get(ware.pk).stock == 1  # type: ignore[union-attr]
    is_cached(Token.cached, "a")
    for each in serializers.deserialize("json", text.replace('"word": "a"', '"word": "b"')):
        each.save()
    assert Ware.cached.get(ware.pk).stock == 2  # type: ignore[union-attr]
    assert Token.cached.get("a") is None


def test_without_autocommit_it_is_told_at_once_and_nothing_is_stored_that_is_not_committed() -> None:
    ware = Ware.objects.create(name="sword", stock=1)
    is_cached(Ware.cached, ware.pk)
    transaction.set_autocommit(False)
    try:
        ware.stock = 2
        ware.save()

        assert Ware.cached.get(ware.pk).stock == 2  # type: ignore[union-attr]
        assert Ware.cached.cache.get(ware.pk) is None
        transaction.rollback()
    finally:
        transaction.set_autocommit(True)
    assert Ware.cached.get(ware.pk).stock == 1  # type: ignore[union-attr]


def test_a_model_of_another_registry_takes_no_name_and_is_no_affair_of_daemons() -> None:
    """As one that SQLite's schema editor makes of a model whose table it rebuilds."""

    class Ware(CachedRow):
        caching = Caching(delay=5)

        class Meta:
            app_label = "db"
            apps = Apps()

    assert Ware.cached.name == "db.ware"
    assert cached_rows()["db.ware"] is not Ware.cached


Arrange = Callable[[Callable[[], object]], None]


@pytest.fixture
def during_the_load(monkeypatch: pytest.MonkeyPatch) -> Arrange:
    """Lets something happen once, after a load has asked the database and before it stores what it got."""

    def arrange(act: Callable[[], object]) -> None:
        acts, load = [act], Ware.cached.load

        def slow(keys: Sequence[str]) -> Any:
            found = load(keys)
            if acts:
                acts.pop()()
            return found

        monkeypatch.setattr(Ware.cached, "load", slow)

    return arrange


# --- A load that began before a commit, and comes to store what it saw after the invalidation.


def save(ware: Ware) -> Callable[[], None]:
    def act() -> None:
        with transaction.atomic():
            ware.stock = 2
            ware.save()

    return act


@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_reader_stores_nothing_of_before_a_commit(during_the_load: Arrange, is_awaited: bool) -> None:
    ware = Ware.objects.create(name="sword", stock=1)
    during_the_load(save(ware))
    row = asyncio.run(Ware.cached.aget(ware.pk)) if is_awaited else Ware.cached.get(ware.pk)
    assert row.stock == 2
    assert Ware.cached.cache.get(ware.pk)["stock"] == 2  # type: ignore[index]


def test_a_daemon_stores_nothing_of_before_a_commit(during_the_load: Arrange) -> None:
    ware = Ware.objects.create(name="sword", stock=1)
    Ware.cached.schedule(ware.pk)
    during_the_load(save(ware))
    worker = RowWorker(cached_rows())
    worker.tick()
    assert Ware.cached.cache.get(ware.pk) is None
    worker.tick()
    assert Ware.cached.cache.get(ware.pk)["stock"] == 2  # type: ignore[index]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_deleted_row_is_not_stored_as_it_was(during_the_load: Arrange, is_deleted: bool) -> None:
    ware = Ware(pk=77, name="sword", stock=1)
    if is_deleted:
        ware.save()
    during_the_load(lambda: ware.delete() if is_deleted else ware.save())
    row = Ware.cached.get(77)
    assert (row is None) == is_deleted


def test_a_reader_in_a_transaction_waits_for_nobody(redis: Redis) -> None:
    ware = Ware.objects.create(name="sword", stock=1)
    Ware.cached.schedule(ware.pk)
    Loader().claim()
    with transaction.atomic():
        assert Ware.cached.get(ware.pk, wait=0).stock == 1  # type: ignore[union-attr]
    assert len(redis.keys("*:claim:*")) == 1


# --- Rows that cannot be loaded.


def test_a_poisonous_row_costs_some_queries_and_no_other_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(self: object, value: str | None, *args: object) -> str | None:
        if value == "BAD":
            raise ValueError("no colour")
        return value

    wares = Ware.objects.bulk_create(Ware(name=str(number), colour="red") for number in range(1_000))
    bad = wares[617]
    Ware.objects.filter(pk=bad.pk).update(colour="bad")
    pks = [ware.pk for ware in wares]
    Ware.cached.schedule_many(pks)
    monkeypatch.setattr("tests.db.models.Colour.from_db_value", check)
    queries: list[Any] = []
    values_list = QuerySet.values_list

    def count(self: QuerySet[Any], *names: str, **options: Any) -> Any:
        queries.append(names)
        return values_list(self, *names, **options)

    monkeypatch.setattr(QuerySet, "values_list", count)

    RowWorker(cached_rows(), batch=40_000).tick()

    assert len(Ware.cached.cache.get_many(pks)) == 999
    assert Ware.cached.cache.get(bad.pk) is None
    assert RowReader().failing() == 1
    assert 2 < len(queries) <= 1 + 2 * 10


def test_more_rows_are_asked_for_than_a_query_takes(django_assert_num_queries: Queries) -> None:
    ware = Ware.objects.create(name="sword")
    with django_assert_num_queries(2):
        found = Ware.cached.load([str(ware.pk + number) for number in range(30_001)])
    assert list(found) == [str(ware.pk)]
