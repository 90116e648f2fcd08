"""
Starting a worker anew when code changes, with Django's own watchers of files.

Django's run_with_reloader() gives the main thread to the watcher and kills a child that takes long to end. A
worker needs the main thread for its signals, and time for its running tasks: so here the watcher has a thread,
and the process, once the worker has drained, becomes a new one with the same arguments and the same id.
"""

from __future__ import annotations

import os
import threading

from django.utils import autoreload

from components.workers.base import Worker


class Reloader:
    """Stops *worker* when code changes; whoever ran it then calls restart()."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._has_changed = False

    def start(self) -> None:
        threading.Thread(target=self._watch, name="reloader", daemon=True).start()

    @property
    def is_due(self) -> bool:
        """Whether code has changed, and nobody has asked the worker to stop for good."""
        return self._has_changed and not self._worker.is_dismissed

    def restart(self) -> None:
        arguments = [str(argument) for argument in autoreload.get_child_arguments()]
        os.execv(arguments[0], arguments)

    def _watch(self) -> None:
        try:
            autoreload.get_reloader().run(threading.main_thread())
        except SystemExit:  # Django's way to say that it is time
            self._has_changed = True
            self._worker.stop()
