"""Commands, each test with a server of its own."""

from components.testing.fixtures import redis  # noqa: F401  (a plain server only)
from tests.fixtures.command import held, queue, server  # noqa: F401
