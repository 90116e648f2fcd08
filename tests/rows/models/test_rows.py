"""Rows of models, read without a query: typed, invalidated after commits, never stored out of a transaction."""

import asyncio
import logging
import pickle
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.template import Context, Template
from django.test.utils import override_settings
from pytest_django import DjangoAssertNumQueries as Queries
from redis import Redis

from components.exceptions import InvalidName, InvalidValue, RedisUnavailable, RowNotSerializable
from components.services.rows import RowReader
from components.services.rows.models import CachedRows, cached_rows
from components.services.rows.models.cached import _written
from components.services.rows.worker import RowWorker
from tests.db.models import DearWare, Shelf, Token, Ware
from tests.fixtures.databases import Tenants, forget
from tests.support.rows import failure_of, let_pass

Patch, Log = pytest.MonkeyPatch, pytest.LogCaptureFixture

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("redis")]

FULL: dict[str, Any] = {
    "name": "sword",
    "stock": 2**63 - 1,
    "price": Decimal("1234567890123456.7890"),
    "weight": 0.1,
    "is_sold": True,
    "made_at": datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "opens_at": time(3, 4, 5, 123456),
    "lasts": timedelta(days=-1, microseconds=1),
    "picture": b"\x00\xff",
    "facts": {"a": [1, None, {"b": 1.5}]},
    "address": "::1",
    "manual": "manuals/sword.pdf",
    "colour": "red",
}


def refresh() -> RowWorker:
    """What is due is loaded by a daemon."""
    worker = RowWorker(cached_rows())
    worker.tick()
    return worker


@pytest.mark.parametrize("arena", ["sqlite"], indirect=True)
def test_who_is_served_by_another_database_reads_its_rows(arena: str) -> None:
    shelves = CachedRows(Shelf, name="tests.shelves")
    try:
        with override_settings(DATABASE_ROUTERS=[tenants := Tenants()]):
            for tenants.alias in ("default", arena):
                Shelf.objects.create(pk=1, name=tenants.alias)
            for tenants.alias in ("default", arena) * 2:
                assert shelves.get(1).name == asyncio.run(shelves.aget(1)).name == tenants.alias  # type: ignore[union-attr]
    finally:
        forget(shelves)


def test_a_row_is_read_as_the_instance_has_it(django_assert_num_queries: Queries) -> None:
    ware = Ware.objects.create(shelf=Shelf.objects.create(name="top"), **FULL)
    stored = Ware.objects.get(pk=ware.pk)
    Ware.cached.get(ware.pk)

    with django_assert_num_queries(0):
        row = Ware.cached.get(ware.pk)

    assert row is not None
    names = [field.attname for field in Ware._meta.concrete_fields if field.name != "password"]
    for name in names:
        assert getattr(row, name) == getattr(stored, name), name
        assert type(getattr(row, name)) in (type(getattr(stored, name)), str), name
    assert list(row.cached) == names
    empty = Ware.cached.get(Ware.objects.create(name="bow").pk)
    assert empty is not None
    assert (empty.weight, empty.made_at, empty.facts, empty.colour) == (None, None, None, None)


def test_missing_rows_are_loaded_in_one_query(django_assert_num_queries: Queries) -> None:
    wares = [Ware.objects.create(name=str(number), stock=number) for number in range(50)]

    with django_assert_num_queries(1):
        rows = Ware.cached.get_many([*(ware.pk for ware in wares), 10**6])
    with django_assert_num_queries(0):
        again = Ware.cached.get_many([*(ware.pk for ware in wares), 10**6])

    assert {pk: row.stock for pk, row in rows.items()} == {ware.pk: ware.stock for ware in wares}
    assert again == rows
    with django_assert_num_queries(0):
        assert Ware.cached.get(10**6) is None


def test_a_cached_row_cannot_be_changed_or_saved() -> None:
    row = Ware.cached.get(Ware.objects.create(name="sword").pk)
    assert row is not None

    with pytest.raises(AttributeError):
        row.stock = 3
    with pytest.raises(AttributeError):
        del row.stock
    for act in (row.save, row.delete):
        with pytest.raises(TypeError):
            act()
    with pytest.raises(AttributeError, match="password"):
        _ = row.password


def test_a_cached_row_is_copied_pickled_and_hashed_as_a_value() -> None:
    row, other = (Ware.cached.get(Ware.objects.create(name=name).pk) for name in ("sword", "shield"))
    assert row is not None

    again = pickle.loads(pickle.dumps(row))

    assert copy(row) is deepcopy(row) is row
    assert (again, again.cached.loaded_at, again.name) == (row, row.cached.loaded_at, "sword")
    assert len({row, again, other}) == 2
    assert deepcopy({"row": row.cached}) == {"row": row.cached}
    with pytest.raises(TypeError, match="dict"):
        pickle.dumps(row.cached)
    stranger = pickle.dumps(row).replace(row.cached._parts[2][2].encode(), b"0" * 16)
    with pytest.raises(pickle.UnpicklingError, match="other columns"):
        pickle.loads(stranger)


@pytest.mark.parametrize("model", [Ware, DearWare])
def test_a_write_is_read_after_its_commit_and_not_before(model: type[Ware]) -> None:
    ware = model.objects.create(name="sword", stock=1)
    assert Ware.cached.get(ware.pk).stock == 1  # type: ignore[union-attr]

    with transaction.atomic():
        ware.stock = 2
        ware.save()
        assert Ware.cached.cache.get(ware.pk)["stock"] == 1  # type: ignore[index]
    assert Ware.cached.get(ware.pk).stock == 2  # type: ignore[union-attr]

    with transaction.atomic():
        ware.stock = 3
        ware.save()
        transaction.set_rollback(True)
    assert Ware.cached.get(ware.pk).stock == 2  # type: ignore[union-attr]

    ware_id = ware.pk
    ware.delete()
    assert Ware.cached.get(ware_id) is None


def test_within_a_transaction_nothing_is_stored(redis: Redis) -> None:
    ware = Ware.objects.create(name="sword", stock=1)
    with transaction.atomic():
        Ware.objects.filter(pk=ware.pk).update(stock=2)
        assert Ware.cached.get(ware.pk).stock == 2  # type: ignore[union-attr]
        transaction.set_rollback(True)
    assert redis.keys("*:row:*") == redis.keys("*:claim:*") == []
    assert Ware.cached.get(ware.pk).stock == 1  # type: ignore[union-attr]


def test_no_write_fails_because_redis_is_away(monkeypatch: Patch, caplog: Log) -> None:
    def fail(*args: object) -> None:
        raise RedisUnavailable("Redis does not answer.")

    ware = Ware.objects.create(name="sword")
    monkeypatch.setattr("components.services.rows.cache.RowCache.invalidate", fail)

    with caplog.at_level(logging.ERROR):
        ware.save()

    assert "Redis does not answer" in caplog.text


def test_a_daemon_asks_the_database_once_for_each_model(django_assert_num_queries: Queries) -> None:
    wares = [Ware.objects.create(name=str(number)) for number in range(30)]
    Token.objects.create(word="a")
    Ware.cached.schedule_many(ware.pk for ware in wares)
    Token.cached.schedule("a")

    with django_assert_num_queries(2):
        refresh()
    with django_assert_num_queries(0):
        assert len(Ware.cached.get_many(ware.pk for ware in wares)) == 30
        assert Token.cached.get("a") is not None


def test_a_row_that_cannot_be_cached_fails_alone() -> None:
    for word, value in (("good", None), ("bad", "x")):
        Token.objects.create(word=word, value=value)
    Token.cached.schedule_many(["good", "bad", "none"])

    refresh()

    reader = RowReader()
    assert "value of the row tokens:bad cannot be cached" in failure_of("bad", "tokens").error
    assert Token.cached.get("good") is not None
    assert Token.cached.get("none") is None
    assert (reader.count(), reader.failing()) == (2, 1)
    with pytest.raises(RowNotSerializable):
        Token.cached.get("bad")


def test_a_database_that_is_away_fails_no_row(redis: Redis, monkeypatch: Patch, caplog: Log) -> None:
    ware = Ware.objects.create(name="sword")
    Token.objects.create(word="a")
    Ware.cached.schedule(ware.pk)
    Token.cached.schedule("a")
    values_list: Callable[..., Any] = QuerySet.values_list

    def fail(self: QuerySet[Any], *names: str, **options: Any) -> Any:
        if self.model is Ware:
            raise OperationalError("server closed the connection")
        return values_list(self, *names, **options)

    monkeypatch.setattr(QuerySet, "values_list", fail)
    with caplog.at_level(logging.WARNING):
        worker = refresh()
    monkeypatch.undo()

    assert "db.Ware: the database does not answer: server closed the connection" in caplog.text
    assert RowReader().failing() == 0
    assert Token.cached.cache.get("a") is not None
    assert Ware.cached.cache.get(ware.pk) is None
    let_pass(redis, 1)
    worker.tick()
    assert Ware.cached.cache.get(ware.pk) is not None


def test_rows_of_a_model_that_is_gone_and_keys_of_another_release_fail_and_stop_no_other() -> None:
    ware = Ware.objects.create(name="sword")
    Ware.cached.schedule(ware.pk)
    Ware.cached.cache.schedule("sword", 5)
    Token.cached.schedule("a")
    RowWorker({"db.ware": Ware.cached}).tick()
    assert "No model has rows called 'tokens'" in failure_of("a", "tokens").error
    assert "not a key of db.Ware" in failure_of("sword", "db.ware").error
    assert Ware.cached.cache.get(ware.pk) is not None


def test_rows_are_refreshed_invalidated_and_unscheduled_by_their_keys() -> None:
    ware = Ware.objects.create(name="sword", stock=1)
    asyncio.run(Ware.cached.aschedule(ware.pk))
    refresh()
    Ware.objects.update(stock=2)
    assert Ware.cached.refresh(ware.pk, ware.pk + 1) == {ware.pk + 1}
    assert Ware.cached.get(ware.pk).stock == 1  # type: ignore[union-attr]
    refresh()
    assert Ware.cached.get(ware.pk).stock == 2  # type: ignore[union-attr]
    Ware.objects.update(stock=3)
    Ware.cached.invalidate(ware.pk)
    assert Ware.cached.get(ware.pk).stock == 3  # type: ignore[union-attr]
    Ware.cached.unschedule(ware.pk)
    assert RowReader().count() == 0


def test_keys_are_written_in_one_way(redis: Redis) -> None:
    ware = Ware.objects.create(pk=42, name="sword")
    assert Ware.cached.get("042") == Ware.cached.get(42) == Ware.cached.get(ware.pk)
    assert len(redis.keys("*:row:*")) == 1
    noon = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    assert _written(noon) == _written(noon.astimezone(timezone(timedelta(hours=5))))
    assert _written(Decimal("100.00")) == _written(Decimal("1E2")) == "100"
    for wrong in ("sword", None, "", float("inf"), float("nan"), object(), b"\xff"):
        with pytest.raises(InvalidName):
            Ware.cached.get(wrong)


def test_wrong_delays_and_names_are_told_at_once() -> None:
    with pytest.raises(InvalidValue):
        CachedRows(Ware, name="others", delay=float("nan"))
    with pytest.raises(ImproperlyConfigured, match="must be above 0"):
        CachedRows(Ware, name="others", delay=0)
    with pytest.raises(ImproperlyConfigured, match=r"Two models have rows called 'db\.ware'"):
        CachedRows(Ware)
    assert "others" not in cached_rows()


Declare = Callable[..., list[CheckMessage]]


@pytest.fixture
def declare() -> Iterator[Declare]:
    """declare(model, **options): what the checks say of such rows."""
    declared = []

    def declare(model: Any, **options: Any) -> list[CheckMessage]:
        declared.append(CachedRows(model, **{"name": "others", **options}))
        name = repr(declared[-1].name)
        return [each for each in run_checks() if str(each.id).startswith("components.") and name in each.msg]

    yield declare
    for rows in declared:
        forget(rows)


@pytest.mark.parametrize(
    ("options", "id", "says", "hints"),
    [
        ({"fields": ["name", "none"]}, "E007", "no field named 'none'", "id, name"),
        ({"fields": ["boxes"]}, "E007", "boxes has no column", "id, name"),
        ({"fields": "name"}, "E007", "the text 'name' and no list", "id, name"),
        ({"fields": []}, "E007", "1 to 2,000", "id, name"),
        ({"fields": ["name", "name"]}, "E007", "a name of its own", "id, name"),
        ({"key": "none"}, "E008", "no field named 'none'", ": id, name."),
        ({"key": "boxes"}, "E008", "boxes has no column", ": id, name."),
        ({"name": "a:b"}, "E009", "without a colon", "that of the model"),
        ({"using": "nowhere"}, "E009", "no alias 'nowhere'", "Known aliases: default"),
    ],
)
def test_a_wrong_declaration_is_told(
    declare: Declare, options: dict[str, Any], id: str, says: str, hints: str
) -> None:
    [message] = declare(Shelf, **options)
    assert (message.id, message.obj, message.is_serious()) == (f"components.{id}", Shelf, True)
    assert says in message.msg
    assert hints in str(message.hint)


def test_all_that_is_wrong_is_told_at_once(declare: Declare) -> None:
    messages = declare(Ware, fields=["none"], key="stock", using="nowhere")
    assert [message.id for message in messages] == ["components.E007", "components.E008", "components.E009"]


def test_a_field_of_which_nothing_is_known_is_warned_of(declare: Declare) -> None:
    [message] = declare(Token)
    assert (message.id, message.is_serious()) == ("components.W005", False)
    assert "field value, a Lossy" in message.msg


def rendered(text: str, **values: Any) -> str:
    return Template("{% load cached_rows %}" + text).render(Context(values))


@pytest.mark.parametrize("name", ["db.ware", "db.Ware"])
def test_a_row_is_read_without_a_query(name: str, django_assert_num_queries: Queries) -> None:
    ware = Ware.objects.create(name="<sword>", stock=3)
    Ware.cached.get(ware.pk)
    with django_assert_num_queries(0):
        text = rendered(
            "{% cached_row name pk as ware %}{{ ware.name }}: {{ ware.stock }}", name=name, pk=ware.pk
        )
    assert text == "&lt;sword&gt;: 3"


def test_rows_of_a_template_come_in_their_order_and_what_there_is_not_is_none(
    django_assert_num_queries: Queries,
) -> None:
    shown = '{% cached_row "db.ware" pk as ware %}{{ ware|default_if_none:"gone" }}'
    assert [rendered(shown, pk=pk) for pk in (10**6, None, "")] == ["gone"] * 3
    assert rendered(shown) == "gone"
    several = (
        '{% cached_rows "db.ware" pks stale=True as all %}{% for each in all %}{{ each.name }}{% endfor %}'
    )
    pks = [Ware.objects.create(name=name).pk for name in ("a", "b")]
    with django_assert_num_queries(1):
        assert rendered(several, pks=[pks[1], 10**6, pks[0]]) == "ba"
