"""Tests of one plain server."""

from __future__ import annotations

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
