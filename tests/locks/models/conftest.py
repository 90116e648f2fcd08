"""Models on SQLite and on PostgreSQL."""

from tests.fixtures.databases import arena  # noqa: F401
