"""Helpers for tests of cached rows: a cache, and time that passes for its rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from redis import Redis

from components.kit.client import get_client
from components.kit.keyspace import BUCKETS, bucket
from components.services.rows import (
    Claim,
    Claims,
    Failure,
    Loader,
    Row,
    RowCache,
    RowReader,
    Shape,
    Stored,
    member,
    name_and_key,
)
from components.services.rows.keys import RowKeys

SHAPE = Shape([("name", "text"), ("stock", "integer")])


def cache(name: str = "items") -> RowCache:
    return RowCache(name, SHAPE)


def row_of(key: str, *, stale: bool = False) -> Row:
    """Return the stored row, which must be there."""
    row = cache().get(key, stale=stale)
    assert row is not None
    return row


def failure_of(key: str | int, name: str = "items") -> Failure:
    """Return why the row could not be loaded, which it must not have been."""
    info = RowReader().find(name, key)
    assert info is not None
    assert info.failure is not None
    return info.failure


def claimed(claims: Claims) -> list[str]:
    return sorted(name_and_key(each)[1] for claim in claims.claims for each in claim.members)


def bodies(rows: Mapping[str, Sequence[Any] | None], name: str = "items") -> dict[str, Stored]:
    """Return the bodies that a loader stores; None stands for a deleted row."""
    return {
        member(name, key): Stored(False, SHAPE.deleted)
        if values is None
        else Stored(True, SHAPE.encode(key, values))
        for key, values in rows.items()
    }


def refresh(rows: Mapping[str, Sequence[Any] | None], *, name: str = "items") -> set[str]:
    """Claim the rows that are due, store *rows*, and return those that were refused."""
    loader = Loader()
    return loader.store(loader.claim(10_000).claims, bodies(rows, name))


def let_pass(redis: Redis, seconds: float, name: str = "items") -> None:
    """Let time pass for all rows, scheduled and stored."""
    shift = round(seconds * 1e6)
    for tag in BUCKETS:
        schedule = RowKeys(tag).schedule
        for each, due in redis.zrange(schedule, 0, -1, withscores=True):
            redis.zadd(schedule, {each: due - shift})
    for key in redis.keys("*:rows:*:row:*"):
        at, till, rest = redis.get(key).split(b",", 2)
        redis.set(key, b"[%d,%d,%s" % (int(at[1:]) - shift, int(till) - shift, rest), keepttl=True)
    for key in redis.keys("*:rows:*:claim:*"):
        at, ends, token = redis.get(key).split(b" ")
        redis.set(key, b"%d %d %s" % (int(at) - shift, int(ends) - shift, token), keepttl=True)


def let_whole_delays_pass() -> None:
    """Make each stored row due its whole delay after its load, without the shortened first interval."""
    client = get_client()
    for tag in BUCKETS:
        for each, delay in client.hgetall(RowKeys(tag).delays).items():
            stored = client.get(RowKeys(tag).row_of(each.decode()))
            if stored:
                since = int(stored[1:].split(b",", 1)[0])
                client.zadd(RowKeys(tag).schedule, {each: since + int(delay)}, xx=True)


def due_at(redis: Redis, key: str, name: str = "items") -> float | None:
    each = member(name, key)
    found: float | None = redis.zscore(RowKeys(bucket(each)).schedule, each)
    return found


def now(redis: Redis) -> int:
    seconds, microseconds = redis.time()
    return int(seconds) * 1_000_000 + int(microseconds)


def loading(delay: float = 60, key: str = "1") -> tuple[Loader, tuple[Claim, ...]]:
    """Schedule the row, and return a loader that has claimed it."""
    cache().schedule(key, delay)
    loader = Loader()
    return loader, loader.claim().claims
