"""The server of services' tests."""

from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401
