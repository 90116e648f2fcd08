"""A server to kill."""

from tests.fixtures.command import server

__all__ = ["server"]
