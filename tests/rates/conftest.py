"""The server of these tests."""

from tests.fixtures.service import alarm, redis, server  # noqa: F401
