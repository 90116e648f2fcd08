"""Models on SQLite and on PostgreSQL."""

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
from tests.fixtures.databases import arena  # noqa: F401
