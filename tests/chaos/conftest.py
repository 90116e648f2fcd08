"""Worker processes and a server to kill."""

from __future__ import annotations

from tests.commands.conftest import held, queue, server

__all__ = ["held", "queue", "server"]
