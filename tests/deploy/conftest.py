"""Files, servers and figures of a site in production."""

from __future__ import annotations

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
