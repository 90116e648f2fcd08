"""cache.lock() of django-redis; redis-py's tests are held against it in tests/redis_suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import caches
from redis import Redis

from components.conf import conf
from components.embedded import EmbeddedServer
from components.exceptions import InvalidValue, LockNotAcquired
from components.services.locks import Lock
from components.testing import redis_at


@pytest.fixture
def cache(redis: Redis, server: EmbeddedServer, redis_mode: str) -> Iterator[Any]:
    """The project's cache, with our client class."""
    name = "ClusterClient" if redis_mode == "cluster" else "Client"
    with redis_at(server.url, CLIENT_CLASS=f"components.cache.{name}"):
        yield caches[conf().cache]


def test_it_is_ours_at_the_key_of_the_cache(cache: Any, redis: Redis) -> None:
    with cache.lock("report", timeout=5, version=2) as held:
        assert isinstance(held, Lock)
        assert held.fence
        assert redis.get(cache.make_key("report", version=2)) == held.local.token
        assert not cache.lock("report").locked()


def test_it_takes_the_options_of_django_redis_and_ours(cache: Any) -> None:
    given = cache.lock("a", None, 10, 0.2, False, 3, None, False)

    assert (given.timeout, given.sleep, given.blocking) == (10, 0.2, False)
    assert given.blocking_timeout == 3
    assert not given.thread_local
    with cache.lock("a", timeout=5, fair=True, owner="jill", raise_on_release_error=False) as ours:
        assert ours.fair
        assert b"/jill/" in ours.local.token
        with pytest.raises(LockNotAcquired), cache.lock("a", blocking_timeout=0.01):
            pytest.fail("both hold it")
    with pytest.raises(InvalidValue):
        cache.lock("a", timeout=0)
