"""
Pulse: a file whose modification time shows that a worker's loop is running, for the probes of containers.

It does not show that Redis answers: a worker that waits for Redis is healthy, and restarting it would not help. If a
process dies or is stuck, its file is no longer touched.
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
        """Update the modification time of the file. An error is logged once; the probe will notice the rest."""
        try:
            self.path.touch()
        except OSError as error:
            if not self._has_failed:
                logger.warning("The heartbeat file cannot be updated: %s.", error)
            self._has_failed = True

    def end(self) -> None:
        self.path.unlink(missing_ok=True)
