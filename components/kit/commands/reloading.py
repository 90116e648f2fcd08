"""
Restart a worker when code changes, with Django's own file watchers.

Django's run_with_reloader() runs the program outside of the main thread and kills a child that takes long to end. A
worker needs the main thread for signals, and time for its running tasks. So here the watcher runs in a thread; once
the worker has drained, the process replaces itself with the same arguments and the same id.
"""

from __future__ import annotations

import threading

from django.utils import autoreload

from components.kit.worker.loop import Loop


class Reloader:
    """Stops *worker* when code changes; its caller then restarts it (restarting.py)."""

    def __init__(self, worker: Loop) -> None:
        self._worker = worker
        #: Whether code has changed.
        self.is_due = False

    def start(self) -> None:
        threading.Thread(target=self._watch, name="reloader", daemon=True).start()

    def _watch(self) -> None:
        try:
            autoreload.get_reloader().run(threading.main_thread())
        except SystemExit:  # how Django reports a change
            self.is_due = True
            self._worker.stop()
