"""Bad input: each its error, before anything is sent, and the state as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import ForeignPermit, InvalidName, InvalidValue
from components.services.semaphores import Semaphore, SemaphoreControls, limit_concurrency
from tests.support.semaphores import take
from tests.support.snapshots import snapshot

LIMITS = [0, -1, 1.0, math.nan, True, "3", None, 2**31]
LEASES = [0, -1, math.nan, math.inf, True, "30", None, 7 * 86_400 + 1]
WAITS = [-0.1, math.nan, math.inf, True, "2"]
WRONG: list[tuple[type[Exception], dict[str, Any]]] = [
    *((InvalidName, {"name": name}) for name in ("", "x" * 501, b"api", None, 7)),
    *((InvalidValue, {"limit": limit}) for limit in LIMITS),
    *((InvalidValue, {"lease": lease}) for lease in LEASES),
]


@pytest.mark.parametrize(("error", "wrong"), WRONG)
@pytest.mark.parametrize("make", [Semaphore, limit_concurrency])
def test_a_semaphore_cannot_be_made_of_it(
    make: Callable[..., Any], error: type[Exception], wrong: dict[str, Any]
) -> None:
    with pytest.raises(error):
        make(**{"name": "api", "limit": 1, **wrong})
    if "name" in wrong:
        with pytest.raises(error):
            SemaphoreControls(wrong["name"])


def test_the_bounds_themselves_are_valid(redis: Redis) -> None:
    semaphore = Semaphore("x" * 500, limit=2**31 - 1, lease=7 * 86_400)
    semaphore.set_limit(2**31 - 1)

    permit = semaphore.acquire(weight=2**31 - 1, wait=0)

    assert semaphore.info().used == permit.weight == 2**31 - 1
    assert 604_700 < semaphore.holders()[0].remaining <= 604_800
    assert Semaphore("a", limit=1, lease=0.001).try_acquire()


@pytest.mark.parametrize(
    "wrong", [*({"wait": wait} for wait in WAITS), *({"weight": weight} for weight in [*LIMITS, 4])], ids=str
)
def test_a_permit_cannot_be_asked_for_with_it(redis: Redis, wrong: dict[str, Any]) -> None:
    semaphore = Semaphore("api", limit=3)
    take(semaphore, 2)
    before = snapshot(redis)

    for ask in (
        lambda: semaphore.acquire(**wrong),
        lambda: semaphore.aacquire(**wrong).__await__().send(None),
        lambda: limit_concurrency("api", limit=3, **wrong),
    ):
        with pytest.raises(InvalidValue):
            ask()

    assert snapshot(redis) == before


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_cannot_be_set_to_it(redis: Redis, limit: Any) -> None:
    with pytest.raises(InvalidValue):
        SemaphoreControls("api").set_limit(limit)

    assert redis.keys("*") == []


@pytest.mark.parametrize("permit", ["", "a/b/c", "0123456789ab/0/x", "0123456789ab/1/x", 7, None, b"x"])
def test_only_permits_of_this_semaphore_are_taken(redis: Redis, permit: Any) -> None:
    semaphore = Semaphore("api", limit=3)

    for act in (semaphore.release, semaphore.refresh, semaphore.evict, semaphore.holder):
        with pytest.raises(ForeignPermit):
            act(permit)

    assert redis.keys("*") == []
