"""Every test of a service runs twice: on a plain server, and on one in cluster mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.testing import empty


@pytest.fixture
def redis(redis_mode: str, request: pytest.FixtureRequest) -> Iterator[Redis]:
    """The project's Redis, empty; in cluster mode a key of another slot is an error."""
    server: EmbeddedServer = request.getfixturevalue(
        "redis_server" if redis_mode == "plain" else "redis_cluster_server"
    )
    with empty(server) as client:
        yield client
