"""Servers whose configuration is another for a while, such as one that has no room left."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import OutOfMemoryError


@contextmanager
def configured(redis: Redis, **options: Any) -> Iterator[None]:
    """Set these options of the server for as long as the block runs."""
    before = {name: next(iter(redis.config_get(name).values())) for name in options}
    try:
        for name, value in options.items():
            redis.config_set(name, value)
        yield
    finally:
        for name, value in before.items():
            redis.config_set(name, value)


@contextmanager
def full(redis: Redis) -> Iterator[None]:
    """Let the server be at its `maxmemory` and evict nothing, and know none of our scripts."""
    redis.script_flush()
    with configured(redis, **{"maxmemory-policy": "noeviction", "maxmemory": 1}):
        with pytest.raises(OutOfMemoryError):
            redis.set("more", 1)
        yield
