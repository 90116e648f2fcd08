"""
What stands in for redis-py's conftest: clients of our private servers, one kind after the other.

Their tests take them from the fixture `r`, and from functions that want options of their command line; ours are the
kinds below. A test of theirs knows nothing of it, so the kind is found through the pytest request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster

from components.embedded import EmbeddedServer


@dataclass(frozen=True)
class Kind:
    """A server, and how to talk to it."""

    is_cluster: bool = False
    protocol: int = 3
    is_single: bool = False


KINDS = {
    "RESP3": Kind(),
    "RESP2": Kind(protocol=2),
    "one connection": Kind(is_single=True),
    "cluster": Kind(is_cluster=True),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def url(kind: Kind, request: pytest.FixtureRequest) -> str:
    """Of a server of that kind, empty."""
    server: EmbeddedServer = request.getfixturevalue(
        "redis_cluster_server" if kind.is_cluster else "redis_server"
    )
    with Redis.from_url(server.url) as client:
        client.flushall()
    return server.url


def _get_client(_class: type, request: pytest.FixtureRequest, **options: Any) -> Any:
    """A client of the test's kind, closed at its end; the name is the one that redis-py's tests import."""
    kind: Kind = request.getfixturevalue("kind")
    options["protocol"] = kind.protocol
    if not kind.is_cluster:
        options["single_connection_client"] = kind.is_single
    client = (RedisCluster if kind.is_cluster else Redis).from_url(request.getfixturevalue("url"), **options)
    request.addfinalizer(client.close)
    return client


@asynccontextmanager
async def async_client(kind: Kind, url: str, **options: Any) -> AsyncIterator[Any]:
    """An asynchronous client of that kind."""
    if kind.is_cluster:
        async with AsyncRedisCluster.from_url(url, protocol=kind.protocol, **options) as cluster:
            yield cluster
    else:
        async with AsyncRedis.from_url(url, protocol=kind.protocol, **options) as client:
            if not kind.is_single:
                yield client
                return
            async with client.client() as single:
                yield single
