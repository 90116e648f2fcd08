"""
Rows, tables, tasks and names that cannot be read: what else lies there is found, and what is too deep is refused.
"""

from __future__ import annotations

import pytest
from redis import Redis

from components.exceptions import GeoTableDamaged, RowNotSerializable
from components.kit.keyspace import bucket
from components.services.counters import CounterReader
from components.services.counters.keys import CounterKeys
from components.services.geo.layout import Manifest
from components.services.locks import LockReader, lock
from components.services.rows import Loader, RowReader, Shape, member
from components.services.rows.keys import RowKeys
from components.services.semaphores import Semaphore, SemaphoreReader
from components.services.semaphores.keys import SemaphoreKeys, index
from tests.chat.test_chat_input import nested
from tests.support.rows import cache, refresh


def nested_text(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("body", [nested_text(50_000), b"[1,", b"\xff", b"5", b"null", b"", b"[]", b"{}"])
def test_a_row_that_cannot_be_read_is_as_one_that_is_not_there(redis: Redis, body: bytes) -> None:
    cache().schedule_many({"1": 5, "2": 5, "3": 5})
    refresh({key: ["sword", 3] for key in "123"})
    redis.set(RowKeys(bucket(member("items", "2"))).row_of(member("items", "2")), body)

    found = cache().get_many(["1", "2", "3"])

    assert list(found) == ["1", "3"]
    assert RowReader().names()[0].name == "items"
    assert cache().get("2") is None
    Loader().claim()


@pytest.mark.parametrize("depth", [32, 33, 1_480])
def test_a_row_holds_json_that_is_32_deep(depth: int) -> None:
    shape = Shape([("id", "integer"), ("data", "json")])

    if depth > 32:
        with pytest.raises(RowNotSerializable):
            shape.encode("7", [1, nested(depth)])
    else:
        assert nested_text(depth).decode() in shape.encode("7", [1, nested(depth)])


@pytest.mark.parametrize(
    "name", [b"\xff", b"", b"1/2", b"x" * 2_000], ids=["bytes", "empty", "parts", "long"]
)
def test_names_that_are_no_text_fail_no_list(redis: Redis, name: bytes) -> None:
    semaphore = Semaphore("good", limit=2)
    permit = semaphore.acquire()
    held = lock("good", timeout=60)
    assert permit
    assert held.acquire()
    tag = bucket("good")
    later = 4e15
    redis.zadd(index(tag), {name: 1})
    redis.zadd(SemaphoreKeys("good").holders, {name: later})
    redis.zadd(SemaphoreKeys("good").heavy, {name: 2})
    redis.zadd(CounterKeys(tag).families, {name: 1})

    assert "good" in [info.name for info in SemaphoreReader().page()]
    assert permit.id in [holder.id for holder in semaphore.holders()]
    assert "good" in [info.name for info in LockReader().held()]
    CounterReader().families()


def test_a_manifest_that_is_nested_too_deeply_is_damaged() -> None:
    with pytest.raises(GeoTableDamaged):
        Manifest.read(nested_text(200_000))
