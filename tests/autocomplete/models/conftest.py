"""Models on SQLite and on PostgreSQL."""

from tests.fixtures.books import none_declared  # noqa: F401
from tests.fixtures.databases import arena  # noqa: F401
