"""
redis-py's tests of redis.lock.Lock, against ours: as the lock_class of a client.

What they call sleep() and monotonic() is redis-py's loop, which our class runs where a `sleep` is given.
"""

from __future__ import annotations

from typing import Any

import pytest
from redis.client import Redis

from components.services.locks import Lock
from tests.redis_suite.clients import _get_client
from tests.redis_suite.modules import cases_of, methods_of

CASES = cases_of(Lock, "test_lock")
globals().update(CASES)  # where pytest looks for them


@pytest.fixture
def r(request: pytest.FixtureRequest) -> Any:
    return _get_client(Redis, request)


def test_all_are_here() -> None:
    assert CASES.keys() == {"TestLock", "TestLockClassSelection"}
    assert len(methods_of(CASES)) >= 32
