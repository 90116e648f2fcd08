"""Tests of figures run on a plain server; with --cluster, on one in cluster mode."""

from tests.fixtures.service import redis, server  # noqa: F401
from tests.fixtures.worker import backend, make_worker  # noqa: F401
