"""Tests of a service run on a plain server; with --cluster, on one in cluster mode."""

from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401
