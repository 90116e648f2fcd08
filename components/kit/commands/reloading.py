"""
Starting a worker anew when code changes, with Django's own watchers of files.

Django's run_with_reloader() gives the main thread to the watcher and kills a child that takes long to end. A
worker needs the main thread for its signals, and time for its running tasks: so here the watcher has a thread,
and the process, once the worker has drained, becomes a new one with the same arguments and the same id.
"""

from __future__ import annotations

import threading

from django.utils import autoreload

from components.kit.worker.loop import Loop


class Reloader:
    """Stops *worker* when code changes; whoever ran it then starts it anew (restarting.py)."""

    def __init__(self, worker: Loop) -> None:
        self._worker = worker
        #: Code has changed.
        self.is_due = False

    def start(self) -> None:
        threading.Thread(target=self._watch, name="reloader", daemon=True).start()

    def _watch(self) -> None:
        try:
            autoreload.get_reloader().run(threading.main_thread())
        except SystemExit:  # Django's way to say that it is time
            self.is_due = True
            self._worker.stop()
