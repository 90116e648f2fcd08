"""
Becoming a new process: the same arguments, the same process id, and nothing of the old one's memory.

That is how a worker loads changed code, and how it gets rid of a thread that is stuck in a task, which
nothing else can end. Descriptors that were inherited stay open, so the new image still holds on to its parent.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from django.utils import autoreload

from components.kit import endings
from components.kit.worker.signals import hold_back

logger = logging.getLogger(__name__)

QUIETED = "--quieted"  # an option that says: be quiet from the beginning, as whoever was here before


def command_line() -> list[str]:
    """How this process was started: the interpreter, its options, the program and its arguments."""
    return [str(argument) for argument in autoreload.get_child_arguments()]


def restart(*, quiet: bool = False, last: Callable[[], None] | None = None) -> NoReturn:
    """
    Become a new process; a *quiet* worker stays so. *last* is called as late as possible.

    A signal that comes meanwhile waits until the new image heeds it, instead of suspending or killing the process.
    """
    hold_back()  # as a worker that has ended did
    flush(last)
    arguments = command_line()
    if quiet and QUIETED not in arguments:
        arguments.append(QUIETED)
    os.execv(arguments[0], arguments)


def flush(last: Callable[[], None] | None = None) -> None:
    """
    Do what is to be done at the end of a process, and write out what is buffered: exec and _exit do neither.

    *last* is called when nothing is left but to write. What it raises is logged, since the process has to end:
    threads that are stuck in tasks would keep it alive for ever.
    """
    endings.do_all()
    if last:
        try:
            last()
        except Exception:
            logger.exception("The last words of this process could not be said.")
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
