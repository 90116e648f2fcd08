"""People who ask over HTTP."""

from tests.fixtures.api import jill, joe, nobody, stranger  # noqa: F401
