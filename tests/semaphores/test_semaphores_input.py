"""Bad input: each its own clear error, before anything is sent, and the state as it was."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import ForeignPermit, InvalidName, InvalidValue
from components.services.semaphores import Semaphore, SemaphoreControls, limit_concurrency
from tests.support.semaphores import take
from tests.support.snapshots import snapshot


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    semaphore = Semaphore("api", limit=3, lease=10)
    take(semaphore, 2)
    return semaphore


MAKERS: list[Callable[..., Any]] = [Semaphore, limit_concurrency]
NAMES = ["", "x" * 501, b"api", None, 7]
LIMITS = [0, -1, 1.0, math.nan, True, "3", None, 2**31]
LEASES = [0, -1, math.nan, math.inf, True, "30", None, 7 * 86_400 + 1]
WAITS = [-0.1, math.nan, math.inf, True, "2"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", MAKERS)
def test_a_name_is_text_of_1_to_500_characters(make: Callable[..., Any], name: str) -> None:
    with pytest.raises(InvalidName, match="semaphore cannot be called"):
        make(name, limit=1)


def test_controls_need_a_name_too() -> None:
    with pytest.raises(InvalidName):
        SemaphoreControls("")


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("make", MAKERS)
def test_a_limit_is_a_whole_number_from_1_on(make: Callable[..., Any], limit: int) -> None:
    with pytest.raises(InvalidValue, match="The limit is"):
        make("api", limit=limit)


@pytest.mark.parametrize("lease", LEASES)
@pytest.mark.parametrize("make", MAKERS)
def test_a_lease_is_a_number_of_seconds_up_to_a_week(make: Callable[..., Any], lease: float) -> None:
    with pytest.raises(InvalidValue, match="The lease is"):
        make("api", limit=1, lease=lease)


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_is_a_number_of_seconds(semaphore: Semaphore, redis: Redis, wait: float) -> None:
    before = snapshot(redis)

    with pytest.raises(InvalidValue, match="The wait is"):
        semaphore.acquire(wait=wait)
    with pytest.raises(InvalidValue, match="The wait is"):
        asyncio.run(_awaited(semaphore.aacquire(wait=wait)))
    with pytest.raises(InvalidValue, match="The wait is"):
        limit_concurrency("api", limit=3, wait=wait)

    assert snapshot(redis) == before


async def _awaited(thing: Any) -> Any:
    return await thing


@pytest.mark.parametrize("weight", [*LIMITS, 4])
def test_a_weight_is_a_whole_number_up_to_the_limit(semaphore: Semaphore, redis: Redis, weight: int) -> None:
    before = snapshot(redis)

    with pytest.raises(InvalidValue, match="The weight is"):
        semaphore.acquire(weight=weight)
    with pytest.raises(InvalidValue, match="The weight is"):
        semaphore.try_acquire(weight=weight)
    with pytest.raises(InvalidValue, match="The weight is"):
        limit_concurrency("api", limit=3, weight=weight)

    assert snapshot(redis) == before


@pytest.mark.parametrize("permit", ["", "a/b/c", "0123456789ab/0/x", "0123456789ab/1/x", 7, None, b"x"])
def test_only_permits_of_this_semaphore_are_taken(semaphore: Semaphore, redis: Redis, permit: Any) -> None:
    before = snapshot(redis)

    for act in (semaphore.release, semaphore.refresh, semaphore.evict):
        with pytest.raises(ForeignPermit):
            act(permit)

    assert snapshot(redis) == before
