"""What stands in for redis-py's conftest: clients of our private servers, one kind after the other."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster

pytest.register_assert_rewrite("redis_tests")


@dataclass(frozen=True)
class Kind:
    """A server, and how to talk to it."""

    is_cluster: bool = False
    protocol: int = 3
    is_single: bool = False


KINDS = [
    pytest.param(Kind(), id="RESP3"),
    pytest.param(Kind(protocol=2, is_single=True), id="RESP2, one connection", marks=pytest.mark.slow),
    pytest.param(Kind(is_cluster=True), id="cluster", marks=pytest.mark.slow),
]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "onlynoncluster: redis-py's; here these tests run on a cluster too")


@pytest.fixture(params=KINDS, autouse=True)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def url(kind: Kind, request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue("redis_cluster_server" if kind.is_cluster else "redis_server")
    with Redis.from_url(server.url) as client:
        client.flushall()
    return str(server.url)


def _get_client(_class: type, request: pytest.FixtureRequest, **options: Any) -> Any:
    """A client of the test's kind, closed at its end; the name is the one that redis-py's tests import."""
    kind: Kind = request.getfixturevalue("kind")
    if not kind.is_cluster:
        options["single_connection_client"] = kind.is_single
    make = RedisCluster if kind.is_cluster else Redis
    client = make.from_url(request.getfixturevalue("url"), protocol=kind.protocol, **options)
    request.addfinalizer(client.close)
    return client


@pytest.fixture
def r(request: pytest.FixtureRequest) -> Any:
    return _get_client(Redis, request)


@pytest_asyncio.fixture
async def create_redis(kind: Kind, url: str) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    async with AsyncExitStack() as stack:

        async def create(**options: Any) -> Any:
            make = AsyncRedisCluster if kind.is_cluster else AsyncRedis
            client = await stack.enter_async_context(make.from_url(url, protocol=kind.protocol, **options))
            return await stack.enter_async_context(client.client()) if kind.is_single else client

        yield create
