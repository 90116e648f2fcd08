"""The scripts of cached rows, each with what is done when its calls are repeated."""

from __future__ import annotations

from typing import Any

from redis import Redis

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.keyspace import bucket
from components.services.rows import Loader, RowControls, member
from components.services.rows.keys import DaemonKeys
from components.services.rows.loader import CLAIM, begin
from tests.support.repeating import Act, cases
from tests.support.rows import SHAPE, bodies, cache, let_pass, refresh

case = cases("rows")


@case
def schedule(redis: Redis) -> Act:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: cache().schedule("1", 5)


@case
def schedule_anew(redis: Redis) -> Act:
    return lambda: cache().schedule("1", 5)


@case
def unschedule(redis: Redis) -> Act:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: cache().unschedule("1")


@case
def refresh_under_way(redis: Redis) -> Act:
    cache().schedule("1", 60)
    Loader().claim()
    return lambda: cache().refresh("1")


@case
def refresh_stored(redis: Redis) -> Act:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: cache().refresh("1")


@case
def store_what_is_to_be_refreshed(redis: Redis) -> Act:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    cache().refresh("1")
    return lambda: loader.store(claims, bodies({"1": None}))


@case
def delay(redis: Redis) -> Act:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: RowControls("items").set_delay(5, "1")


@case
def invalidate(redis: Redis) -> Act:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: cache().invalidate("1")


def _claim() -> Any:
    """Claim rows as a loader does, but in one bucket instead of all at once."""
    keys = DaemonKeys(bucket(member("items", "1")), "f" * 16)
    call = CLAIM.run(get_client(), keys, token=f"{'f' * 16}-1", limit=10, lease=5_000_000)
    _now, _next, *members = at_once(call)
    return members


@case
def claim(redis: Redis) -> Act:
    cache().schedule("1", 60)
    return _claim


@case
def claim_after_a_lost_lease(redis: Redis) -> Act:
    cache().schedule("1", 60)
    Loader().claim()
    let_pass(redis, 6)
    return _claim


@case
def claim_by_readers(redis: Redis) -> Act:
    def act() -> Any:
        _claims, waiting = at_once(begin(get_client(), [member("items", "1")], "f" * 16, SHAPE, None, 5))
        return waiting

    return act


@case
def store(redis: Redis) -> Act:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    return lambda: loader.store(claims, bodies({"1": ["sword", 3]}))


@case
def store_deleted(redis: Redis) -> Act:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    return lambda: loader.store(claims, bodies({"1": None}))


@case
def store_too_late(redis: Redis) -> Act:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    cache().invalidate("1")
    return lambda: loader.store(claims, bodies({"1": ["sword", 3]}))


@case
def fail(redis: Redis) -> Act:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    return lambda: loader.fail(claims, {member("items", "1"): "ValueError: no"})


@case
def release(redis: Redis) -> Act:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    return lambda: loader.release(claims, [member("items", "1")], pause=3)
