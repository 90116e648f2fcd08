"""Commands, each test with a server of its own."""

from tests.fixtures.command import held, queue, server  # noqa: F401
