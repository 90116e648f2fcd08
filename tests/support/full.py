"""A server that has no room left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis import Redis
from redis.exceptions import OutOfMemoryError


@contextmanager
def full(redis: Redis) -> Iterator[None]:
    """Let the server be at its `maxmemory` and evict nothing, and know none of our scripts."""
    redis.script_flush()
    redis.config_set("maxmemory-policy", "noeviction")
    redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemoryError):
            redis.set("more", 1)
        yield
    finally:
        redis.config_set("maxmemory", 0)
