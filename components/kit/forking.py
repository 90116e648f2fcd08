"""
Let a forked child begin anew: what a process has in memory for itself, such as counts, threads and locks.

Python tells of its own forks. A server written in C, such as uWSGI, forks behind its back; so what is about to use
such memory compares the ids of processes.
"""

import os
import sys
from collections.abc import Callable
from threading import Lock

#: Whether the server of this process is such a one. Only counting, which takes less time than a look at the id, asks.
FORKS_IN_C = "uwsgi" in sys.modules

_acts: list[Callable[[], object]] = []
_process = os.getpid()
_guard = Lock()


def in_child(act: Callable[[], object]) -> None:
    """Call *act* in each forked child, before it uses any of this app."""
    _acts.append(act)


def notice() -> None:
    """Call the functions if this process is a child that has not done so."""
    global _process
    if os.getpid() == _process:
        return
    with _guard:
        if os.getpid() != _process:
            for act in _acts:
                act()
            _process = os.getpid()


def _begin_anew() -> None:
    global _guard
    _guard = Lock()  # another thread of the parent may have held it
    notice()


os.register_at_fork(after_in_child=_begin_anew)
