"""
Pulse: a file whose time of change says that a worker's loop turns, for the probes of containers.

It does not say that Redis answers: a worker that waits for Redis is well, and starting it anew would not help.
A process that dies leaves the file to grow old. One that is stuck lets it grow old too.
"""

from __future__ import annotations

import logging
from pathlib import Path

logger = logging.getLogger(__name__)


class Pulse:
    """The file at *path*, until end()."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._has_failed = False

    def begin(self) -> None:
        """Make the file. Raises OSError."""
        self.path.touch()

    def beat(self) -> None:
        """Change the time of the file. Why that is impossible is logged once: the probe will notice the rest."""
        try:
            self.path.touch()
        except OSError as error:
            if not self._has_failed:
                logger.warning("The heartbeat file cannot be touched: %s.", error)
            self._has_failed = True

    def end(self) -> None:
        self.path.unlink(missing_ok=True)
