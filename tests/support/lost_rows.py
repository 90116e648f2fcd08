"""The scripts of cached rows, each with what is done while its reply gets lost. (tests/kit/test_lost_replies.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis import Redis

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.keyspace import bucket
from components.services.rows import Loader, RowControls, member
from components.services.rows.keys import DaemonKeys
from components.services.rows.loader import CLAIM, begin
from tests.support.rows import SHAPE, bodies, cache, let_pass, refresh


def schedule(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: cache().schedule("1", 5)


def schedule_anew(redis: Redis) -> Callable[[], Any]:
    return lambda: cache().schedule("1", 5)


def unschedule(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: cache().unschedule("1")


def refresh_under_way(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    Loader().claim()
    return lambda: cache().refresh("1")


def refresh_stored(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: cache().refresh("1")


def store_what_is_to_be_refreshed(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    cache().refresh("1")
    return lambda: loader.store(claims, bodies({"1": None}))


def delay(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: RowControls("items").set_delay(5, "1")


def invalidate(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    return lambda: cache().invalidate("1")


def _claim() -> Any:
    """Claim rows as a loader does, but in one bucket instead of all at once."""
    keys = DaemonKeys(bucket(member("items", "1")), "f" * 16)
    call = CLAIM.run(get_client(), keys, token=f"{'f' * 16}-1", limit=10, lease=5_000_000)
    _now, _next, *members = at_once(call)
    return members


def claim(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    return _claim


def claim_after_a_lost_lease(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    Loader().claim()
    let_pass(redis, 6)
    return _claim


def claim_by_readers(redis: Redis) -> Callable[[], Any]:
    def act() -> Any:
        _claims, waiting = at_once(begin(get_client(), [member("items", "1")], "f" * 16, SHAPE, None, 5))
        return waiting

    return act


def store(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    return lambda: loader.store(claims, bodies({"1": ["sword", 3]}))


def store_deleted(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    return lambda: loader.store(claims, bodies({"1": None}))


def store_too_late(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    cache().invalidate("1")
    return lambda: loader.store(claims, bodies({"1": ["sword", 3]}))


def fail(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    return lambda: loader.fail(claims, {member("items", "1"): "ValueError: no"})


def release(redis: Redis) -> Callable[[], Any]:
    cache().schedule("1", 60)
    loader = Loader()
    claims = loader.claim().claims
    return lambda: loader.release(claims, [member("items", "1")], pause=3)


CASES = {
    "rows/begin": [claim_by_readers],
    "rows/claim": [claim, claim_after_a_lost_lease],
    "rows/fail": [fail],
    "rows/invalidate": [invalidate],
    "rows/refresh": [refresh_under_way, refresh_stored],
    "rows/release": [release],
    "rows/schedule": [schedule, schedule_anew, delay],
    "rows/store": [store, store_deleted, store_too_late, store_what_is_to_be_refreshed],
    "rows/unschedule": [unschedule],
}
