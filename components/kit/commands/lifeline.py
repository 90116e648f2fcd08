"""
The lifeline of a worker process: a pipe whose other end only its parent holds (processes.py).

It works on any Unix. docs/kit.md says why.
"""

from __future__ import annotations

import logging
import os
import threading

from components.kit.worker.loop import UNHEALTHY, Loop

logger = logging.getLogger(__name__)


class Lifeline:
    """Stops *worker* when the pipe is closed, and ends the process if stopping takes longer than *patience*."""

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
            logger.error("The worker did not stop within %g s; its process is ended now.", self._patience)
            os._exit(UNHEALTHY)
