"""What progress() takes: numbers that the control room can show."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from components.services.queues import aprogress, progress

WRONG = [float("nan"), float("inf"), 10**400, -1, "3", True, None, Decimal(1)]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_number_is_refused_where_it_is_given(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"progress\(\) was given done="):
        progress(wrong, 10)
    with pytest.raises(ValueError, match=r"progress\(\) was given done="):
        asyncio.run(aprogress(wrong, 10))


@pytest.mark.parametrize("wrong", [wrong for wrong in WRONG if wrong is not None])
def test_a_total_must_be_a_number_or_unknown(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"progress\(\) was given total="):
        progress(1, wrong)


@pytest.mark.parametrize(("done", "total"), [(0, 0), (1, None), (0.5, 1.0), (7, 3)])
def test_outside_of_a_worker_it_does_nothing(done: float, total: float | None) -> None:
    progress(done, total)
    asyncio.run(aprogress(done, total))
