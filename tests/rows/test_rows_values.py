"""What is written comes back as it was, or is refused where it is written."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.exceptions import InvalidValue, RowNotSerializable, RowTooLarge
from components.services.rows import KINDS, MAX_ROW, Kind, Row, Shape, list_of
from components.services.rows.cache import _loads

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_OFFSETS = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(
    lambda delta: timezone(timedelta(minutes=delta // timedelta(minutes=1)))
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(),
    "integer": st.integers(),
    "boolean": st.booleans(),
    "float": st.floats(allow_nan=False),
    "decimal": st.decimals(allow_nan=False),
    "datetime": st.datetimes() | st.datetimes(timezones=_OFFSETS | st.just(UTC)),
    "date": st.dates(),
    "time": st.times() | st.times(timezones=_OFFSETS),
    "duration": st.timedeltas(),
    "uuid": st.uuids(),
    "bytes": st.binary(),
    "json": _JSON,
}


def there_and_back(kind: str | Kind, value: Any) -> Any:
    shape = Shape([("value", kind)])
    _at, _till, _fingerprint, stored = _loads(f"[1,2,{shape.encode('1', [value])}]")
    return Row(shape, "1", 1, [1, 2, "", stored])["value"]


@pytest.mark.parametrize("name", sorted(KINDS))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_values_come_back_as_they_were(name: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[name])

    found = there_and_back(name, value)

    assert found == value
    assert type(found) is type(value)
    assert there_and_back(list_of(KINDS[name]), [value, None]) == [value, None]
    assert there_and_back(name, None) is None


@settings(max_examples=20)
@given(st.data())
def test_lists_of_lists_come_back(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.lists(st.none() | st.decimals(allow_nan=False), max_size=3), max_size=3))

    assert there_and_back(list_of(list_of(KINDS["decimal"])), values) == values


def test_numbers_that_are_none_come_back() -> None:
    assert math.isnan(there_and_back("float", math.nan))
    assert there_and_back("float", -math.inf) == -math.inf
    assert there_and_back("decimal", Decimal("NaN")).is_nan()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("datetime", datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("time", time(3, 4, 5, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))),
        ("decimal", Decimal("0.10")),
        ("duration", timedelta(days=-1, microseconds=1)),
        ("integer", 2**63 - 1),
        ("uuid", UUID(int=1)),
    ],
)
def test_values_that_other_serializers_lose_are_kept(kind: str, value: Any) -> None:
    assert repr(there_and_back(kind, value)) == repr(value)


def test_views_of_bytes_come_back_as_bytes() -> None:
    assert there_and_back("bytes", memoryview(b"\x00\xff")) == b"\x00\xff"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", 3),
        ("text", "\ud800"),
        ("integer", "3"),
        ("decimal", 0.1),
        ("datetime", date(2026, 1, 1)),
        ("uuid", "3"),
        ("bytes", "text"),
        ("json", object()),
        ("json", math.nan),
        ("json", {"a": math.inf}),
        ("duration", 3),
    ],
)
def test_values_that_would_not_come_back_are_refused(kind: str, value: Any) -> None:
    with pytest.raises(RowNotSerializable):
        Shape([("value", kind)]).encode("items:1", [value])


def test_a_self_reference_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    with pytest.raises(RowNotSerializable):
        Shape([("value", "json")]).encode("items:1", [endless])


def test_a_row_is_refused_above_its_size() -> None:
    shape = Shape([("value", "text")])
    around = len(shape.encode("1", [""]))

    assert len(shape.encode("1", ["x" * (MAX_ROW - around)])) == MAX_ROW
    with pytest.raises(RowTooLarge):
        shape.encode("items:1", ["x" * (MAX_ROW - around + 1)])
    with pytest.raises(RowTooLarge):
        shape.encode("items:1", ["é" * (MAX_ROW // 2)])


def test_a_row_has_as_many_values_as_columns() -> None:
    with pytest.raises(RowNotSerializable):
        Shape([("a", "text"), ("b", "text")]).encode("1", ["a"])


@pytest.mark.parametrize(
    "columns", [[], [("a", "text"), ("a", "text")], [("a", "colour")], [("", "text")], [(3, "text")]]
)
def test_columns_have_names_and_known_kinds(columns: Any) -> None:
    with pytest.raises(InvalidValue):
        Shape(columns)


def test_a_row_cannot_be_changed() -> None:
    row = Row(Shape([("a", "integer")]), "1", 5, [3, 9, "", [1]])

    with pytest.raises(TypeError):
        row["a"] = 2  # type: ignore[index]
    with pytest.raises(KeyError):
        row["b"]
    assert (row.age, row.is_stale, row.is_deleted, list(row)) == (0.000002, False, False, ["a"])
