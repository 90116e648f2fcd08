"""Servers to make trouble with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.testing import ClusterServer
from tests.fixtures.service import alarm, redis, server  # noqa: F401


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Path | None:
    """What --redis-server names."""
    found: Path | None = request.config.getoption("--redis-server")
    return found


@pytest.fixture
def own_server(tmp_path: Path, program: Path | None) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path / "redis", server=program, appendonly=False) as made:
        yield made


@pytest.fixture
def own_cluster(tmp_path: Path, program: Path | None) -> Iterator[ClusterServer]:
    with ClusterServer(tmp_path / "cluster", server=program) as made:
        yield made
