"""Every test of a service runs twice: on a plain server, and on one in cluster mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.testing import empty


@pytest.fixture
def server(redis_mode: str, request: pytest.FixtureRequest) -> EmbeddedServer:
    fixture = "redis_server" if redis_mode == "plain" else "redis_cluster_server"
    server: EmbeddedServer = request.getfixturevalue(fixture)
    return server


@pytest.fixture
def redis(server: EmbeddedServer) -> Iterator[Redis]:
    """The project's Redis, empty; in cluster mode a key of another slot is an error."""
    with empty(server) as client:
        yield client
