"""People who ask over HTTP."""

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
from tests.fixtures.api import jill, joe, nobody, stranger  # noqa: F401
