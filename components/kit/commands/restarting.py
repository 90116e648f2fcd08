"""
Replace this process by a new one with the same arguments and the same process id, and with fresh memory.

A worker loads changed code this way. It is also the only way to get rid of a thread that is stuck in a task.
Inherited descriptors stay open, so the new process keeps the lifeline to its parent.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from django.utils import autoreload

from components.kit import endings
from components.kit.worker.signals import STOPPING, hold_back

logger = logging.getLogger(__name__)

# This option makes a worker quiet from the start, because the worker that it replaces was quiet.
QUIETED = "--quieted"


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
    endings.do_all(is_sudden=True)
    if last:
        try:
            last()
        except Exception:
            logger.exception("The final step of this process failed.")
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
