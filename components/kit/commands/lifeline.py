"""
The lifeline of a worker process: a pipe that only its parent (processes.py) holds the other end of.

The parent closes it to let all its workers drain, and the kernel closes it if the parent is killed: in both
cases no worker goes on alone. Unlike a signal it cannot be lost on a process that still starts, nor be
counted twice where a service manager signals parent and workers alike. It works on any Unix.
"""

from __future__ import annotations

import logging
import os
import threading

from components.kit.worker.loop import UNHEALTHY, Loop

logger = logging.getLogger(__name__)


class Lifeline:
    """Dismisses *worker* when the pipe is closed, and ends the process if it takes longer than *patience*."""

    def __init__(self, worker: Loop, descriptor: int, *, patience: float) -> None:
        self._worker = worker
        self._descriptor = descriptor
        self._patience = patience

    def start(self) -> None:
        threading.Thread(target=self._hold, name="lifeline", daemon=True).start()

    def _hold(self) -> None:
        while os.read(self._descriptor, 1):
            pass
        self._worker.dismiss()
        if not self._worker.ended.wait(self._patience):
            logger.error("The worker did not stop within %g s; ending its process.", self._patience)
            os._exit(UNHEALTHY)
