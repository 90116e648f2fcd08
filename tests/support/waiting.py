"""Wait for other processes: as briefly as possible, and never for ever."""

import time
from collections.abc import Callable

import psutil


def eventually(condition: Callable[[], object], *, within: float = 20, pause: float = 0.005) -> bool:
    """
    Wait until *condition* is true, and return whether that happened within this many seconds; *pause* is between two
    checks.
    """
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def has_ended(process: psutil.Process) -> bool:
    """Return True if a process is gone, or dead and not yet collected by its parent."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
