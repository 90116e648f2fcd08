"""Throttles: how often a person may make a request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from components.api import throttle
from components.api.problems import Problem
from components.api.throttle import Throttle


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that sets the clock to so many seconds after the start."""
    now = [1_000.0]
    monkeypatch.setattr(throttle.time, "monotonic", lambda: now[0])
    return lambda seconds: now.__setitem__(0, 1_000.0 + seconds)


def passed(throttle: Throttle, user: str, times: int) -> int:
    count = 0
    for _ in range(times):
        with suppress(Problem):
            throttle.check(user)
            count += 1
    return count


def test_a_burst_passes_at_once_and_the_rest_at_the_rate(at: Callable[[float], None]) -> None:
    throttle = Throttle(rate=2, burst=5)

    assert passed(throttle, "joe", 10) == 5
    at(1.0)
    assert passed(throttle, "joe", 10) == 2
    at(1_000.0)
    assert passed(throttle, "joe", 10) == 5


def test_a_refusal_says_when_there_is_room(at: Callable[[float], None]) -> None:
    throttle = Throttle(rate=0.25, burst=1)
    throttle.check("joe")

    with pytest.raises(Problem) as raised:
        throttle.check("joe")
    at(float(raised.value.headers["Retry-After"]))

    assert (raised.value.kind, raised.value.headers) == ("too-fast", {"Retry-After": "4"})
    throttle.check("joe")


def test_people_are_counted_separately_and_not_forever(
    at: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "_MOST", 3)
    counted = Throttle(rate=1, burst=1)

    assert [passed(counted, name, 2) for name in "abc"] == [1, 1, 1]
    assert passed(counted, "d", 2) == 1  # which takes the place of a
    assert [passed(counted, name, 1) for name in "bcd"] == [0, 0, 0]
    assert passed(counted, "a", 1) == 1
