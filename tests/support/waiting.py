"""Waiting for what other processes do: as short as it can be, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil


def eventually(condition: Callable[[], object], *, within: float = 20, pause: float = 0.005) -> bool:
    """Whether *condition* came true within so many seconds; with a *pause* between two looks."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def has_ended(process: psutil.Process) -> bool:
    """Gone, or dead and not yet collected by its parent."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
