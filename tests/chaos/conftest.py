"""Worker processes and a server to kill."""

from tests.fixtures.command import held, queue, server

__all__ = ["held", "queue", "server"]
