"""
What a worker does when it is sent a signal.

SIGTERM, SIGINT   the first: end when running tasks have; the second: end at once
SIGTSTP           take no more tasks, and go on with the running ones
SIGTTIN           write the stacks of all threads to stderr, and a line per running task to the log

The stacks are written by the C code of faulthandler, so they come also when the loop itself is stuck.
All else happens in the main thread, as Python has it; a worker that runs in another thread heeds no signals.
"""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

STOPPING = (signal.SIGTERM, signal.SIGINT)
QUIETING = signal.SIGTSTP
TELLING = signal.SIGTTIN

#: What a process must not miss while it starts anew.
HELD_BACK = (QUIETING, TELLING, *STOPPING)

_STDERR = 2  # the descriptor, which is there whatever has become of sys.stderr

_afterwards: dict[signal.Signals, Any] = {}  # the handlers of signals that are held back


def hold_back() -> None:
    """
    Let signals wait until release(), or until the process that takes this one's place heeds them.

    The mask of the main thread is not enough: a thread that is stuck in a task still accepts signals, and a default
    handler would then end the process. So a handler passes them on to the main thread, where they wait.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    if threading.current_thread() is threading.main_thread():
        for number in HELD_BACK:
            before = signal.signal(number, _pass_on)
            if before is not _pass_on:
                _afterwards[number] = before


def release() -> None:
    """Let signals that were held back arrive."""
    _restore()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)


def _restore() -> None:
    while _afterwards:
        signal.signal(*_afterwards.popitem())


def _pass_on(number: int, frame: FrameType | None) -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, number)


class Killed(BaseException):
    """The second signal: end at once. A BaseException, since it may arrive anywhere."""


class Signals:
    """
    In a with block, signals call *stop*, *quiet* and *tell*; the second to stop raises Killed. Afterwards they do
    what they did before.

    Where the end is that of the process, *ends_process*, all are held back: the caller starts the process anew, which
    heeds them then, or calls release(). After that a second signal to stop is ignored, and so are the other two.
    """

    def __init__(
        self,
        *,
        stop: Callable[[], None],
        quiet: Callable[[], None],
        tell: Callable[[], None],
        ends_process: bool = False,
    ) -> None:
        self._stop = stop
        self._ends_process = ends_process
        self._handlers = {
            **dict.fromkeys(STOPPING, self._on_stop),
            QUIETING: lambda number, frame: quiet(),
            TELLING: lambda number, frame: tell(),
        }
        self._before: dict[signal.Signals, Any] = {}
        self._is_asked = False
        self._may_kill = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            _restore()
            self._before = {
                number: signal.signal(number, handler) for number, handler in self._handlers.items()
            }
            faulthandler.register(TELLING, file=_STDERR, all_threads=True, chain=True)
            release()  # whoever started this process may have held them back, lest they be lost or end it
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._may_kill = False
        if self._ends_process:
            hold_back()
        if self._before:
            faulthandler.unregister(TELLING)
        for number, handler in self._before.items():
            if not self._ends_process:
                signal.signal(number, handler)
            elif self._is_asked or number not in STOPPING:
                _afterwards[number] = signal.SIG_IGN  # by default, SIGTSTP and SIGTTIN would suspend its end
            else:
                _afterwards[number] = handler

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._stop()
        elif self._may_kill:
            self._may_kill = False  # a third must not disturb what the second began
            raise Killed
