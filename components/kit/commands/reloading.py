"""
Restart a worker when code changes, with Django's own file watchers.

Django's run_with_reloader() runs the program outside of the main thread and kills a child that takes long to end. A
worker needs the main thread for signals, and time for its running tasks. So here the watcher runs in a thread; once
the worker has drained, the process replaces itself with the same arguments and the same id.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import threading
import time

from django.utils import autoreload

from components.kit.commands.restarting import command_line
from components.kit.worker.loop import Loop
from components.kit.worker.signals import STOPPING

logger = logging.getLogger(__name__)

_PAUSE = 1.0  # seconds between two attempts to load code that cannot be loaded


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


def wait_until_loadable() -> bool:
    """
    Wait until a process that begins now could load the changed code. Return False if a signal to stop comes first.

    Signals are held back, so one that has arrived is pending.
    """
    said = ""
    while failed := _failure():
        if failed != said:
            logger.error("Code has changed, and cannot be loaded; waiting until it can.\n%s", failed)
            said = failed
        time.sleep(_PAUSE)
        if signal.sigpending() & {*STOPPING}:
            for number in STOPPING:
                signal.signal(number, signal.SIG_IGN)  # which drops what is pending
            return False
    return True


def _failure() -> str:
    """Load settings, apps and models in another process. Return what it writes if it fails, else ""."""
    ended = subprocess.run([*command_line(), "--help"], capture_output=True, text=True, check=False)
    return ended.stderr.strip() or "It wrote no error." if ended.returncode else ""
