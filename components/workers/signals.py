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
HELD_BACK = (QUIETING, *STOPPING)

_STDERR = 2  # the descriptor, which is there whatever has become of sys.stderr


def release() -> None:
    """Let signals that were held back arrive."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)


class Killed(BaseException):
    """The second signal: end at once. A BaseException, since it may arrive anywhere."""


class Signals:
    """
    In a with block, signals call *stop*, *quiet* and *tell*; the second to stop raises Killed. Afterwards they do
    what they did before.

    Where the end is that of the process, *ends_process*, a signal to stop that comes after the first has nothing left
    to do, and all are held back: the caller starts the process anew, which heeds them then, or calls release().
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
            self._before = {
                number: signal.signal(number, handler) for number, handler in self._handlers.items()
            }
            faulthandler.register(TELLING, file=_STDERR, all_threads=True, chain=True)
            release()  # whoever started this process may have held them back, lest they be lost or end it
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._may_kill = False
        if self._ends_process:
            signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
        if self._before:
            faulthandler.unregister(TELLING)
        is_last = self._ends_process and self._is_asked
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if is_last and number in STOPPING else handler)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._stop()
        elif self._may_kill:
            self._may_kill = False  # a third must not disturb what the second began
            raise Killed
