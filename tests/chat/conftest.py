"""Tests of chats; on a server in cluster mode with --cluster."""

from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401
