"""The server of these tests, and who waits in them."""

from tests.fixtures.service import alarm, no_heartbeats, one_of_each, redis, server  # noqa: F401
