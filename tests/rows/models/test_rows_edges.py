"""Rows of models at their edges: races with real transactions, poison, sizes, keys, lost data, two daemons."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from django.apps.registry import Apps
from django.db import connection, connections, models, transaction
from django.db.models import QuerySet
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from components.services.rows import Loader, RowReader
from components.services.rows.models import CachedRows, cached_rows
from components.services.rows.worker import RowWorker
from tests.db.models import Token, Ware
from tests.support.rows import failure_of, let_pass

pytestmark = pytest.mark.django_db(transaction=True)


def refresh(**options: Any) -> RowWorker:
    """What is due is loaded by a daemon."""
    worker = RowWorker(cached_rows(), **options)
    worker.tick()
    return worker


@pytest.fixture
def during_the_load(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
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
def test_a_reader_does_not_store_what_was_so_before_a_commit(
    redis: Redis, during_the_load: Callable[[Callable[[], object]], None], is_awaited: bool
) -> None:
    ware = Ware.objects.create(name="sword", stock=1)
    during_the_load(save(ware))

    row = asyncio.run(Ware.cached.aget(ware.pk)) if is_awaited else Ware.cached.get(ware.pk)
    assert row.stock == 2
    assert Ware.cached.cache.get(ware.pk)["stock"] == 2  # type: ignore[index]


def test_a_daemon_does_not_store_what_was_so_before_a_commit(
    redis: Redis, during_the_load: Callable[[Callable[[], object]], None]
) -> None:
    ware = Ware.objects.create(name="sword", stock=1)
    Ware.cached.schedule(ware.pk)
    during_the_load(save(ware))

    worker = refresh()

    assert Ware.cached.cache.get(ware.pk) is None
    worker.tick()
    assert Ware.cached.cache.get(ware.pk)["stock"] == 2  # type: ignore[index]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_deleted_row_is_not_stored_as_missing_nor_as_it_was(
    redis: Redis, during_the_load: Callable[[Callable[[], object]], None], is_deleted: bool
) -> None:
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


def test_cached_rows_are_read_without_the_database(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    ware = Ware.objects.create(name="sword")
    Ware.cached.get(ware.pk)
    monkeypatch.setattr(connections["default"], "connection", None)

    Ware.cached.get(ware.pk)

    assert connections["default"].connection is None


# --- Rows that cannot be loaded.


def test_a_poisonous_row_among_a_thousand_costs_some_queries_and_no_other_row(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
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

    refresh(batch=40_000)

    assert len(Ware.cached.cache.get_many(pks)) == 999
    assert Ware.cached.cache.get(bad.pk) is None
    assert RowReader().failing() == 1
    assert 2 < len(queries) <= 1 + 2 * 10


def test_a_source_without_a_shape_stops_no_other(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    class Shapeless:
        @property
        def shape(self) -> Any:
            raise LookupError("no shape")

        def load_all(self, keys: Sequence[str]) -> Any:
            return Token.cached.load_all(keys)

    ware = Ware.objects.create(name="sword")
    Ware.cached.schedule(ware.pk)
    Token.cached.schedule("a")

    RowWorker({"tokens": Shapeless(), "db.ware": Ware.cached}).tick()

    assert Ware.cached.cache.get(ware.pk) is not None
    assert failure_of("a", "tokens").error == "LookupError: no shape"


def test_more_rows_are_asked_for_than_a_query_takes(
    redis: Redis, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ware = Ware.objects.create(name="sword")

    with django_assert_num_queries(2):
        found = Ware.cached.load([str(ware.pk + number) for number in range(30_001)])

    assert list(found) == [str(ware.pk)]


# --- Daemons, and Redis.


def test_a_daemon_lives_on_when_all_data_are_lost(redis: Redis) -> None:
    ware = Ware.objects.create(name="sword")
    Ware.cached.schedule(ware.pk)
    worker = refresh()

    redis.flushall()
    redis.script_flush()
    worker.tick()
    assert redis.keys("*:rows:*") == []
    Ware.cached.schedule(ware.pk)
    worker.tick()

    assert Ware.cached.cache.get(ware.pk) is not None


# --- Keys of other types.

APPS = Apps()


class Price(models.Model):
    amount = models.DecimalField(primary_key=True, max_digits=9, decimal_places=2)

    class Meta:
        app_label = "edges"
        apps = APPS


class Hour(models.Model):
    at = models.DateTimeField(primary_key=True)

    class Meta:
        app_label = "edges"
        apps = APPS


PRICES, HOURS = CachedRows(Price), CachedRows(Hour)


@pytest.fixture
def tables() -> Iterator[None]:
    with connection.schema_editor() as editor:
        for model in (Price, Hour):
            editor.create_model(model)
    yield
    with connection.schema_editor() as editor:
        for model in (Price, Hour):
            editor.delete_model(model)


def test_equal_keys_are_one_row(redis: Redis, tables: None) -> None:
    noon = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    there = noon.astimezone(timezone(timedelta(hours=5)))
    for rows, model, key, same in (
        (PRICES, Price, Decimal("100.00"), Decimal("1E2")),
        (HOURS, Hour, noon, there),
    ):
        assert rows.get(key) is None
        row = model(pk=same)

        row.save()

        assert rows.get(key) is not None
        rows.schedule(same)
        RowWorker({rows.name: rows}).tick()
        assert RowReader().failing() == 0
        assert rows.cache.get(rows.key(key)) is not None
    let_pass(redis, 1)
    assert len(redis.keys("*:row:*")) == 2


# --- A table that was migrated, and two releases that know it in two ways.


class OldFlag(models.Model):
    colour = models.CharField(max_length=9)

    class Meta:
        app_label = "edges"
        apps = APPS
        db_table = "flags"


class NewFlag(models.Model):
    colour = models.CharField(max_length=9)
    stripes = models.IntegerField(default=3)

    class Meta:
        app_label = "edges"
        apps = APPS
        db_table = "flags"


OLD, NEW = CachedRows(OldFlag, name="flags"), CachedRows(NewFlag, name="flags")


def test_two_releases_of_a_migrated_model_each_read_rows_of_their_own_shape(redis: Redis) -> None:
    with connection.schema_editor() as editor:
        editor.create_model(NewFlag)
    try:
        pk = NewFlag.objects.create(colour="red", stripes=7).pk
        OLD.schedule(pk)

        for _ in range(2):  # they take turns
            assert list(OLD.get(pk).cached) == ["id", "colour"]  # type: ignore[union-attr]
            assert NEW.get(pk).stripes == 7  # type: ignore[union-attr]
        let_pass(redis, OLD.delay)
        RowWorker({"flags": OLD}).tick()
        assert OLD.cache.get(str(pk)) is not None
        assert NEW.cache.get(str(pk), stale=True) is None
        assert NEW.get(pk).stripes == 7  # type: ignore[union-attr]
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(NewFlag)
