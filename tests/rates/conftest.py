"""The server of these tests."""

from __future__ import annotations

from tests.fixtures.service import alarm, redis, server  # noqa: F401
