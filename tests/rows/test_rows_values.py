"""What is written comes back as it was, or is refused where it is written; and what was written otherwise."""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidName, InvalidValue, RowNotSerializable, RowTooLarge
from components.kit.keyspace import bucket
from components.services.rows import (
    KINDS,
    MAX_ROW,
    Kind,
    Loader,
    Row,
    RowCache,
    RowControls,
    RowReader,
    Shape,
    list_of,
    member,
)
from components.services.rows.cache import _loads
from components.services.rows.keys import RowKeys
from tests.chat.test_chat_limits import nested
from tests.support.rows import SHAPE, cache, refresh
from tests.support.snapshots import snapshot

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
@settings(max_examples=30)
@given(st.data())
def test_values_come_back_as_they_were(name: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[name])
    found = there_and_back(name, value)
    assert found == value
    assert type(found) is type(value)
    assert there_and_back(list_of(KINDS[name]), [value, None]) == [value, None]
    assert there_and_back(list_of(list_of(KINDS[name])), [[value], None, []]) == [[value], None, []]
    assert there_and_back(name, None) is None


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("datetime", datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("time", time(3, 4, 5, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))),
        *(
            ("decimal", Decimal("0.10")),
            ("decimal", Decimal("NaN")),
            ("float", math.nan),
            ("float", -math.inf),
        ),
        *(("duration", timedelta(-1, 0, 1)), ("integer", 2**63 - 1), ("uuid", UUID(int=1))),
    ],
)
def test_values_that_other_serializers_lose_are_kept(kind: str, value: Any) -> None:
    assert repr(there_and_back(kind, value)) == repr(value)
    assert there_and_back("json", nested(32)) == nested(32)
    assert there_and_back("bytes", memoryview(b"\x00\xff")) == b"\x00\xff"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("text", value) for value in (3, "\ud800")),
        *(
            ("json", value)
            for value in (object(), math.nan, {"a": math.inf}, ENDLESS, nested(33), nested(1_480))
        ),
        *(("integer", "3"), ("decimal", 0.1), ("datetime", date(2026, 1, 1)), ("uuid", "3")),
        *(("bytes", "text"), ("duration", 3), ("json", {7: 1}), ("json", [(1, 2)]), ("float", 2**53 + 1)),
        *(("boolean", 2), ("boolean", 1.0), ("date", datetime(2026, 1, 1))),
    ],
)
def test_values_that_would_not_come_back_are_refused(kind: str, value: Any) -> None:
    with pytest.raises(RowNotSerializable):
        Shape([("value", kind)]).encode("items:1", [value])
    with pytest.raises(RowNotSerializable):
        Shape([("value", kind)]).encode("items:1", [])


def test_a_row_is_refused_above_its_size() -> None:
    shape = Shape([("value", "text")])
    around = len(shape.encode("1", [""]))
    assert len(shape.encode("1", ["x" * (MAX_ROW - around)])) == MAX_ROW
    with pytest.raises(RowTooLarge):
        shape.encode("items:1", ["x" * (MAX_ROW - around + 1)])
    with pytest.raises(RowTooLarge):
        shape.encode("items:1", ["é" * (MAX_ROW // 2)])


@pytest.mark.parametrize(
    "columns", [[], [("a", "text"), ("a", "text")], [("a", "colour")], [("", "text")], [(3, "text")]]
)
def test_columns_have_names_and_known_kinds(columns: Any) -> None:
    with pytest.raises(InvalidValue):
        Shape(columns)


def test_a_row_cannot_be_changed() -> None:
    row = Row(Shape([("a", "integer"), ("b", "json")]), "1", 5, [3, 9, "", [1, {"c": [1]}]])
    row["b"]["c"].append(2)
    assert row["b"] == {"c": [1]}
    with pytest.raises(TypeError):
        row["a"] = 2  # type: ignore[index]
    with pytest.raises(KeyError):
        row["c"]
    assert (row.age, row.is_stale, row.is_deleted, list(row)) == (0.000002, False, False, ["a", "b"])


WRONG: dict[str, tuple[list[Any], list[Callable[[Any], object]]]] = {
    "name": (
        ["", "x" * 201, "a:b", b"items", None, 7, "\ud800", ["items"]],
        [lambda name: RowCache(name, SHAPE), lambda name: RowReader().find(name, "1")],
    ),
    "key": (
        ["", "x" * 291, b"1", None, 1.0, True, "\ud800", ["1"]],
        [
            lambda key: cache().schedule(key, 5),
            lambda key: cache().unschedule(key),
            lambda key: cache().invalidate(key),
            lambda key: cache().get(key),
            lambda key: cache().get_many(["1", key]),
            lambda key: cache().get_or_load([key], lambda wanted: {}, delay=5),
            lambda key: RowReader().find("items", key),
        ],
    ),
    "delay": (
        [math.nan, math.inf, True, False, "5", None, 1e-9, 0.009, 10**12, Decimal(5), Decimal(-5)],
        [
            lambda delay: cache().schedule("1", delay),
            lambda delay: cache().schedule_many({"1": 5, "2": delay}),
            lambda delay: RowControls("items").set_delay_of_all(delay),
            lambda delay: RowControls("items").set_delay(delay, "1"),
        ],
    ),
    "max_age": (
        [math.nan, -1, 0, True, "5", math.inf],
        [
            lambda age: cache().get("1", max_age=age),
            lambda age: cache().get_or_load(["1"], lambda wanted: {}, delay=5, max_age=age),
        ],
    ),
    "lease": ([math.nan, 0, -1, True, "5"], [lambda lease: Loader(lease=lease)]),
}


@pytest.mark.parametrize("of", WRONG)
def test_wrong_names_keys_and_seconds_are_refused_before_anything_is_sent(redis: Redis, of: str) -> None:
    errors: dict[str, Any] = {"name": (InvalidName, None), "key": ((InvalidName, TypeError), None)}
    error, match = errors.get(of, (InvalidValue, of))
    for value, act in product(*WRONG[of]):
        with pytest.raises(error, match=match):
            act(value)
    assert snapshot(redis) == {}


def test_any_text_can_be_a_key(redis: Redis) -> None:
    for key in ("a:b", "{}", " ", "\x00", "ß", 7, -3, "x" * 290):
        cache().schedule(key, 366 * 86_400)
        found = RowReader().find("items", key)
        assert found is not None
        assert found.key == str(key)
        assert found.delay == 366 * 86_400


@pytest.mark.parametrize("body", [b"[" * 50_000, b"[1,", b"\xff", b"5", b"null", b"", b"[]", b"{}"])
def test_a_row_that_cannot_be_read_is_as_one_that_is_not_there(redis: Redis, body: bytes) -> None:
    cache().schedule_many({"1": 5, "2": 5, "3": 5})
    refresh({key: ["sword", 3] for key in "123"})
    redis.set(RowKeys(bucket(member("items", "2"))).row_of(member("items", "2")), body)
    found = cache().get_many(["1", "2", "3"])
    assert list(found) == ["1", "3"]
    assert RowReader().names()[0].name == "items"
    assert cache().get("2") is None
    Loader().claim()
