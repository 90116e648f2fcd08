"""Every test of figures runs twice: on a plain server, and on one in cluster mode."""

from __future__ import annotations

from tests.fixtures.service import redis, server  # noqa: F401
from tests.fixtures.worker import backend, make_worker  # noqa: F401
