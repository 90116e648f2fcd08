"""
The lifeline of a worker process: a pipe whose other end only its parent holds (processes.py).

The parent closes its end to make all workers drain, and the kernel closes it if the parent is killed, so no worker
goes on alone. Unlike a signal, a closed pipe is not lost on a process that is still starting, and it is not counted
twice if a service manager signals the parent and its workers. It works on any Unix.
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
