"""Ids sort by creation, which settles the order of what became runnable in one millisecond."""

from __future__ import annotations

import time
from uuid import RFC_4122, UUID

import pytest

from components.kit import ids
from components.kit.ids import uuid7


@pytest.mark.parametrize("ahead", [0, 86_400_000], ids=["the clock stands still", "the clock is turned back"])
def test_ids_sort_by_creation_even_when(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    last_ms = time.time_ns() // 1_000_000 + 60_000 + ahead
    monkeypatch.setattr(ids, "_last", last_ms << 12)

    made = [uuid7() for _ in range(10_000)]

    assert made == sorted(made)
    assert UUID(hex=made[0]).int >> 80 == last_ms
    assert len(set(made)) == 10_000


def test_an_id_is_a_uuid_of_version_7_that_tells_the_time() -> None:
    before = time.time_ns() // 1_000_000
    made = UUID(hex=uuid7())

    assert (made.version, made.variant) == (7, RFC_4122)
    assert abs((made.int >> 80) - before) < 60_000
