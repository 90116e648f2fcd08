"""Tests of one plain server."""

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
