"""
Replace this process by a new one with the same arguments and the same process id, and with fresh memory.

A worker loads changed code this way. It is also the only way to get rid of a thread that is stuck in a task.
Inherited descriptors stay open, so the new process keeps the lifeline to its parent.

Django's run_with_reloader() runs the program outside of the main thread and kills a child that takes long to end. A
worker needs the main thread for signals, and time for its running tasks. So here the watcher runs in a thread; once
the worker has drained, the process replaces itself.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from django.utils import autoreload

from components.kit import at_exit
from components.workers.loop import Loop
from components.workers.signals import STOPPING, hold_back

logger = logging.getLogger(__name__)

# This option makes a worker quiet from the start, because the worker that it replaces was quiet.
QUIETED = "--quieted"
_PAUSE = 1.0  # seconds between two attempts to load code that cannot be loaded


def command_line() -> list[str]:
    """Return the command line of this process: the interpreter, its options, the program and its arguments."""
    return [str(argument) for argument in autoreload.get_child_arguments()]


def restart(*, quiet: bool = False, last: Callable[[], None] | None = None) -> NoReturn:
    """
    Replace this process; a *quiet* worker stays quiet. *last* is called as late as possible.

    A signal that arrives meanwhile stays pending until the new process handles it, so it neither suspends nor kills
    it. In the moment of exec itself, another thread could accept it, and it would be lost with that thread. So then a
    signal to stop ends this process, which has nothing left to do.
    """
    hold_back()  # as in a worker that has ended
    flush(last)
    arguments = command_line()
    if quiet and QUIETED not in arguments:
        arguments.append(QUIETED)
    if threading.current_thread() is threading.main_thread():
        for number in STOPPING:
            signal.signal(number, signal.SIG_DFL)
    os.execv(arguments[0], arguments)


def flush(last: Callable[[], None] | None = None) -> None:
    """
    Call *last* and flush all output, which exec and _exit do not do.

    *last* is called when only output is left. An exception in it is logged and not raised, because the process has to
    end: threads that are stuck in tasks would otherwise keep it alive for ever.
    """
    at_exit.do_all(is_sudden=True)
    if last:
        try:
            last()
        except Exception:
            logger.exception("The final step of this process failed.")
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()


def watch(worker: Loop, changed: threading.Event) -> None:
    """Set *changed* and stop *worker* when code changes, which Django's own file watchers notice."""
    try:
        autoreload.get_reloader().run(threading.main_thread())
    except SystemExit:  # how Django reports a change
        changed.set()
        worker.stop()


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
