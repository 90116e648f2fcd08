"""
Run functions before this process ends or replaces itself.

The functions run at a normal end, at the end of a child of multiprocessing, and on SIGTERM. Some servers let that
signal kill them after their shutdown, and atexit functions are not called then. So if another handler for SIGTERM
exists, it is called after this one, and the functions run again and again until the process ends. A process that
replaces itself with exec, or leaves with _exit, calls do_all(is_sudden=True) itself. Nothing runs after SIGKILL.
"""

import atexit
import logging
import os
import signal
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

logger = logging.getLogger(__name__)

Act = Callable[[], object]

_PATIENCE = 2.0  # how many seconds a process continues after SIGTERM to run the functions
_PAUSE = 0.05  # seconds between two runs while a server shuts down

_acts: list[Act] = []
_sudden: list[Act] = []
_before: Any = None
#: Whether SIGTERM has come, and whether all functions have run since then.
_is_ending, _is_over = False, threading.Event()


def at_end(act: Act) -> None:
    """
    Call *act* before this process ends. It must be safe to repeat. A forked child has to register its own functions.

    SIGTERM is handled only if the main thread calls this.
    """
    if act not in _acts:
        _acts.append(act)
    atexit.unregister(act)
    atexit.register(act)
    if util := sys.modules.get("multiprocessing.util"):
        util.Finalize(None, act, exitpriority=0)  # children of multiprocessing end without atexit
    _heed_sigterm()


def at_sudden_end(act: Act) -> None:
    """Call *act* before this process replaces itself or leaves with _exit, when atexit functions do not run."""
    if act not in _sudden:
        _sudden.append(act)


def _heed_sigterm() -> None:
    global _before
    handler = signal.getsignal(signal.SIGTERM)
    # None stands for a handler of a server written in C, which Python could not call.
    if handler in (_on_sigterm, signal.SIG_IGN, None):
        return
    with suppress(ValueError):  # raised outside of the main thread
        signal.signal(signal.SIGTERM, _on_sigterm)
        _before = handler


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """
    Run all functions in another thread, and return: this thread may have been interrupted in one of them, or while it
    holds a lock that they need. When they have run, the signal comes again and ends the process.
    """
    global _is_ending
    is_last = not callable(_before)
    if is_last and _is_ending:
        if _is_over.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        return
    _is_ending = True
    try:
        # Thread.start() waits for the thread, which gevent forbids in a handler.
        start_new_thread(_end if is_last else _do_all_until_the_end, ())
    except RuntimeError:  # the interpreter is already ending
        _is_over.set()
        if is_last:
            _on_sigterm(number, frame)
    if not is_last:
        _before(number, frame)


def _end() -> None:
    """Run all functions, and end this process by SIGTERM."""
    with suppress(RuntimeError):
        thread = threading.Thread(target=do_all, daemon=True)
        thread.start()
        thread.join(_PATIENCE)
    _is_over.set()
    while True:  # a signal that comes just before the main thread begins to wait does not wake it
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_PAUSE)


def _begin_anew() -> None:
    """Forget the functions of the parent in a forked child, which registers its own, and its reaction to SIGTERM."""
    global _is_ending
    for act in _acts:
        atexit.unregister(act)
    _acts.clear()
    _sudden.clear()
    _is_ending = False
    _is_over.clear()
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, _before if _before is not None else signal.SIG_DFL)


os.register_at_fork(after_in_child=_begin_anew)


def do_all(*, is_sudden: bool = False) -> None:
    """Run the registered functions now. An exception in one is logged."""
    for act in [*_acts, *(_sudden if is_sudden else ())]:
        try:
            act()
        except Exception:
            logger.exception("%r failed at the end of this process.", act)


def _do_all_until_the_end() -> None:
    while True:
        do_all()
        time.sleep(_PAUSE)
