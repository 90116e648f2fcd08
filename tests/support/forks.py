"""Forks of this process, by Python and behind its back."""

import os
import sys
import time
from collections.abc import Callable
from ctypes import PyDLL


def fork_in_c() -> int:
    """
    Fork as a server written in C does. No thread may ask for Python's lock meanwhile: the child would wait for that
    thread, which it does not have.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3_600)
    try:
        time.sleep(0.02)  # whoever asks now, by the old interval, gets it
        return int(PyDLL(None).fork())
    finally:
        sys.setswitchinterval(interval)


def in_child(check: Callable[[], bool], fork: Callable[[], int] = os.fork) -> bool:
    pid = fork()
    if not pid:
        os._exit(0 if check() else 1)
    _pid, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0
