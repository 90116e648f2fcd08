"""Fixtures for all tests; those for Redis come from the plugin that the app gives to its users."""

from __future__ import annotations

import pytest

pytest_plugins = ["components.testing", "pytester"]


@pytest.fixture(params=["plain", "cluster"])
def redis_mode(request: pytest.FixtureRequest) -> str:
    """A test that asks for it runs twice: for a plain server, and for one in cluster mode."""
    return str(request.param)
