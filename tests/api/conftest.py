"""People who make requests."""

from __future__ import annotations

from tests.fixtures.api import jill, joe, nobody, stranger  # noqa: F401
