"""redis-py's tests of its lock, against the one that cache.lock() of django-redis makes with our client classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import caches
from redis.client import Redis

from components.conf import conf
from components.services.locks import Lock
from components.testing import redis_at
from tests.redis_suite.clients import Kind, _get_client
from tests.redis_suite.modules import cases_of

OurTests: Any = cases_of(Lock, "test_lock")["TestLock"]


class TestCacheLock(OurTests):  # type: ignore[misc]
    """Those that need a client of their own, such as one that decodes, hand it on."""

    def get_lock(self, redis: Any, *args: Any, **kwargs: Any) -> Lock:
        made = cache().lock(*args, client=redis, **kwargs)
        assert type(made) is Lock
        return made


def cache() -> Any:
    return caches[conf().cache]


@pytest.fixture
def r(request: pytest.FixtureRequest) -> Any:
    return _get_client(Redis, request)


@pytest.fixture(autouse=True)
def cache_with_our_client(kind: Kind, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    name = "ClusterClient" if kind.is_cluster else "Client"
    with redis_at(url, CLIENT_CLASS=f"components.cache.{name}"):
        # The tests look at the key that they have named, where a cache puts a prefix to it.
        monkeypatch.setattr(cache(), "key_func", lambda key, prefix, version: key)
        yield
