"""People who make requests."""

from tests.fixtures.api import jill, joe, nobody, stranger  # noqa: F401
