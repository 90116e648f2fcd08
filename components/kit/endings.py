"""
What is done before this process ends or becomes a new one, as far as Python is asked.

That is at a normal end, at the end of a child of multiprocessing, and on SIGTERM. Some servers let that signal kill
them when they have wound up, and no atexit comes then: so where another handler stands, it is called after ours, and
the acts are done again and again until the process is gone. A process that replaces itself with exec, or leaves with
_exit, calls do_all() itself. SIGKILL asks nobody.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

logger = logging.getLogger(__name__)

Act = Callable[[], object]

_PATIENCE = 2.0  # seconds that a process lives on after SIGTERM for what is to be done
_PAUSE = 0.05  # seconds from one time to the next, when a server winds up

_acts: list[Act] = []
_before: Any = None


def at_end(act: Act) -> None:
    """
    Do *act* before this process ends. It must bear repetition. A forked child has to ask again.

    SIGTERM is only heeded if the main thread asks.
    """
    if act not in _acts:
        _acts.append(act)
    atexit.unregister(act)
    atexit.register(act)
    if util := sys.modules.get("multiprocessing.util"):
        util.Finalize(None, act, exitpriority=0)  # its children end without atexit
    _heed_sigterm()


def _heed_sigterm() -> None:
    global _before
    handler = signal.getsignal(signal.SIGTERM)
    # None: that of a server written in C, which Python could not call.
    if handler in (_on_sigterm, signal.SIG_IGN, None):
        return
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _on_sigterm)
        _before = handler


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """Do all acts in another thread, since this one may have been interrupted while it held a lock."""
    is_last = not callable(_before)
    thread = threading.Thread(target=do_all if is_last else _do_all_until_the_end, daemon=True)
    with suppress(RuntimeError):  # the interpreter ends already
        thread.start()
    if not is_last:
        _before(number, frame)
        return
    if thread.ident:
        thread.join(_PATIENCE)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def do_all() -> None:
    """Do now what this process was asked to do before it ends. What an act raises is logged."""
    for act in list(_acts):
        try:
            act()
        except Exception:
            logger.exception("%r failed at the end of this process.", act)


def _do_all_until_the_end() -> None:
    while True:
        do_all()
        time.sleep(_PAUSE)
