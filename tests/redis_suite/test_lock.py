"""
redis-py's own tests of its two lock classes, against ours: as the lock_class of a client, and by cache.lock().

They are in redis-py's source distribution only, which tests/upstream.py gets. They are imported as they are: only the
class that they test is another, as is their conftest.
"""

import sys
from collections.abc import Awaitable, Callable, Iterator
from importlib import import_module
from inspect import iscoroutinefunction
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio
from django.core.cache import caches

from components.conf import conf
from components.services.locks import AsyncLock, Lock
from components.testing import redis_at
from tests.redis_suite import conftest
from tests.upstream import redis_suite

PACKAGE = "redis_tests"


def suite(lock: type, name: str, least: int) -> Any:
    """Return redis-py's module *name*, made to test *lock*."""
    package = sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
    package.__path__ = [str(redis_suite().tests)]
    sys.modules[f"{PACKAGE}.conftest"] = conftest
    module: Any = import_module(f"{PACKAGE}.{name}")
    assert issubclass(lock, module.Lock)
    module.Lock = lock  # each lock is made with lock_class=Lock
    cases = [case for each, case in vars(module).items() if each.startswith("Test")]
    tests = [(case, test) for case in cases for test in vars(case) if test.startswith("test_")]
    assert len(tests) >= least
    for case, test in tests:
        if iscoroutinefunction(method := vars(case)[test]):  # redis-py has pytest-asyncio take all of them
            setattr(case, test, pytest.mark.asyncio(method))
    return module


sync, asynchronous = suite(Lock, "test_lock", 32), suite(AsyncLock, "test_asyncio.test_lock", 30)


class Asynchronous:
    @pytest_asyncio.fixture
    async def r(self, create_redis: Callable[..., Awaitable[Any]]) -> Any:
        return await create_redis()


class TestLock(sync.TestLock):  # type: ignore[misc]
    """What its tests call sleep() and monotonic() is redis-py's loop, which runs where a `sleep` is given."""


class TestLockClass(sync.TestLockClassSelection):  # type: ignore[misc]
    pass


class TestAsyncLock(Asynchronous, asynchronous.TestLock):  # type: ignore[misc]
    pass


class TestAsyncLockClass(Asynchronous, asynchronous.TestLockClassSelection):  # type: ignore[misc]
    pass


class TestCacheLock(sync.TestLock):  # type: ignore[misc]
    """By django-redis with our client classes. Tests that need a client of their own hand it on."""

    @pytest.fixture(autouse=True)
    def cache(self, kind: conftest.Kind, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        name = "ClusterClient" if kind.is_cluster else "Client"
        with redis_at(url, CLIENT_CLASS=f"components.cache.{name}"):
            # The tests look at the key that they have named, where a cache puts a prefix to it.
            monkeypatch.setattr(caches[conf().cache], "key_func", lambda key, prefix, version: key)
            yield

    def get_lock(self, redis: Any, *args: Any, **kwargs: Any) -> Lock:
        made = caches[conf().cache].lock(*args, client=redis, **kwargs)
        assert type(made) is Lock
        return made
