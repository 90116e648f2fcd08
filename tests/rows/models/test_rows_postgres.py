"""Rows of a real PostgreSQL: what only it holds comes back as it was, and a stale refill is refused there too."""

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import environ
import pytest
from django.apps.registry import Apps
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, IntegerRangeField
from django.db import connections, models
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange, NumericRange
from pytest_django import DjangoDbBlocker
from redis import Redis

from components.services.rows import RowReader
from components.services.rows.models import CachedRows
from components.services.rows.worker import RowWorker
from tests.support.postgres import PostgresServer
from tests.support.rows import failure_of

ALIAS = "garage"
APPS = Apps()


class Car(models.Model):
    serial = models.UUIDField(primary_key=True, default=uuid.uuid4)
    price = models.DecimalField(max_digits=40, decimal_places=20, null=True)
    made_at = models.DateTimeField(null=True)
    key_code = models.BinaryField(null=True)
    facts = models.JSONField(null=True)
    gears = ArrayField(models.IntegerField(null=True), null=True)
    seats = ArrayField(ArrayField(models.DecimalField(max_digits=9, decimal_places=3)), null=True)
    tests = ArrayField(models.DateTimeField(), null=True)
    years = IntegerRangeField(null=True)
    leases = ArrayField(DateTimeRangeField(), null=True)
    lent = DateTimeRangeField(null=True)
    runs = models.DurationField(null=True)
    sold_on = models.DateField(null=True)

    class Meta:
        app_label = "garage"
        apps = APPS


NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)
FULL: dict[str, Any] = {
    "price": Decimal("12345678901234567890.12345678901234567890"),
    "made_at": NOON,
    "key_code": b"\x00\xff",
    "facts": {"a": [1, None, {"b": 1.5}], "ß": 2**60},
    "gears": [1, None, -(2**31)],
    "seats": [[Decimal("1.000"), Decimal("0.100")], [Decimal("2.500"), Decimal("-1.000")]],
    "tests": [NOON, NOON + timedelta(microseconds=1)],
    "years": NumericRange(1, 10),
    "leases": [DateTimeTZRange(NOON, None), DateTimeTZRange(None, NOON, "[]")],
    "lent": DateTimeTZRange(NOON, NOON + timedelta(days=1), "(]"),
    "runs": timedelta(days=-5, microseconds=7),
    "sold_on": date(2026, 1, 2),
}
CARS = CachedRows(Car, using=ALIAS)


@pytest.fixture
def garage(
    redis: Redis, postgres_server: PostgresServer, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    connections.settings[ALIAS] = {
        **connections.settings["default"],
        **environ.Env.db_url_config(postgres_server.new_database()),
        "OPTIONS": {},
        "CONN_MAX_AGE": None,
    }
    with django_db_blocker.unblock():
        with connections[ALIAS].schema_editor() as editor:
            editor.create_model(Car)
        yield
        connections[ALIAS].close()
        del connections[ALIAS]
    del connections.settings[ALIAS]


@pytest.mark.parametrize("values", [FULL, {"gears": [], "years": NumericRange(empty=True)}])
def test_values_of_postgresql_come_back_unchanged(garage: None, values: dict[str, Any]) -> None:
    pk = Car.objects.using(ALIAS).create(**values).pk
    stored = Car.objects.using(ALIAS).get(pk=pk)

    for key in (pk, str(pk)):
        row = CARS.get(key)
        for field in Car._meta.concrete_fields:
            kept, found = getattr(stored, field.attname), getattr(row, field.attname)
            assert bytes(found) == bytes(kept) if field.attname == "key_code" and kept else found == kept
            assert isinstance(found, bytes) or type(found) is type(kept)


def test_a_value_that_cannot_be_read_fails_alone(garage: None) -> None:
    """A date after the last one that Python knows."""
    good, bad = (Car.objects.using(ALIAS).create(sold_on=date(2026, 1, 2)).pk for _ in range(2))
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("UPDATE garage_car SET sold_on = 'infinity' WHERE serial = %s", [bad])
    CARS.schedule_many([good, bad])
    RowWorker({CARS.name: CARS}).tick()
    assert CARS.cache.get(str(good)) is not None
    assert "DataError" in failure_of(str(bad), CARS.name).error


def test_a_table_that_lacks_a_column_fails_its_rows_until_it_has_it(garage: None) -> None:
    """Between the deployment of a release and its migration."""
    pk = Car.objects.using(ALIAS).create(price=1).pk
    CARS.schedule(pk)
    with connections[ALIAS].cursor() as cursor:
        cursor.execute("ALTER TABLE garage_car DROP COLUMN runs")
        RowWorker({CARS.name: CARS}).tick()
        info = RowReader().find(CARS.name, str(pk))
        cursor.execute("ALTER TABLE garage_car ADD COLUMN runs interval")

    assert info
    assert info.failure
    assert "runs does not exist" in info.failure.error
    assert CARS.get(pk) is not None


def test_a_connection_that_was_ended_is_made_anew(garage: None, postgres_server: PostgresServer) -> None:
    pk = Car.objects.using(ALIAS).create(price=1).pk
    CARS.schedule(pk)
    worker = RowWorker({CARS.name: CARS})
    with postgres_server.connect() as other:
        other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    worker.tick()
    assert RowReader().failing() == 0
    assert CARS.cache.get(str(pk)) is None

    assert CARS.get(pk) is not None
