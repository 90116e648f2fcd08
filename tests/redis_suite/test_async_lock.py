"""redis-py's tests of redis.asyncio.lock.Lock, against AsyncLock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from inspect import iscoroutinefunction
from typing import Any

import pytest_asyncio

from components.services.locks import AsyncLock
from tests.redis_suite.clients import Kind, async_client
from tests.redis_suite.modules import cases_of, methods_of

CASES = cases_of(AsyncLock, "test_asyncio.test_lock")
globals().update(CASES)


@pytest_asyncio.fixture
async def create_redis(kind: Kind, url: str) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    async with AsyncExitStack() as stack:

        async def create(**options: Any) -> Any:
            return await stack.enter_async_context(async_client(kind, url, **options))

        yield create


@pytest_asyncio.fixture
async def r(create_redis: Callable[..., Awaitable[Any]]) -> Any:
    return await create_redis()


def test_all_are_here() -> None:
    tests = methods_of(CASES)
    assert CASES.keys() == {"TestLock", "TestLockClassSelection"}
    assert len(tests) >= 30
    assert [name for name, method in tests.items() if not iscoroutinefunction(method)] == [
        "TestLockClassSelection.test_lock_class_argument"
    ]
