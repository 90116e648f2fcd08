"""Tests of chats; on a server in cluster mode with --cluster."""

from __future__ import annotations

from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401
