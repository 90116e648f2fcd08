"""What progress() takes: numbers that the control room can show."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from redis import Redis

from components.services.queues import aprogress, is_cancelled, progress


@pytest.mark.parametrize(
    "wrong", [float("nan"), float("inf"), 10**400, 1.1e18, -1, "3", True, None, Decimal(1)]
)
def test_an_invalid_number_is_refused_where_it_is_given(wrong: Any) -> None:
    with pytest.raises(ValueError, match="done="):
        progress(wrong, 10)
    with pytest.raises(ValueError, match="done="):
        asyncio.run(aprogress(wrong, 10))
    if wrong is not None:  # the total is unknown
        with pytest.raises(ValueError, match="total="):
            progress(1, wrong)


@pytest.mark.parametrize(("done", "total"), [(0, 0), (1, None), (0.5, 1.0), (7, 3), (1, 1e18)])
def test_outside_of_a_worker_it_does_nothing(redis: Redis, done: float, total: float | None) -> None:
    progress(done, total)
    asyncio.run(aprogress(done, total))

    assert is_cancelled() is False
    assert redis.dbsize() == 0
