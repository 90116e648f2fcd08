"""
The reactions of a worker to signals.

SIGTERM, SIGINT, SIGHUP  the first: end when running tasks have; the second: end at once
SIGTSTP                  take no more tasks, and go on with the running ones
SIGTTIN                  write the stacks of all threads to stderr, and a line per running task to the log

All of this happens in the main thread, where Python runs signal handlers, between two instructions: the handler of
faulthandler would read the stacks of threads that run, and could crash the worker. A worker in another thread ignores
signals.
"""

import faulthandler
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from components.kit import at_exit  # noqa: F401  (its reaction to a fork has to come first)

_STAYS = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # as nohup asks for
STOPPING = (signal.SIGTERM, signal.SIGINT, *([] if _STAYS else [signal.SIGHUP]))
QUIETING = signal.SIGTSTP
TELLING = signal.SIGTTIN

#: Signals that must not be lost while a process replaces itself.
HELD_BACK = (QUIETING, TELLING, *STOPPING)

# The descriptor, which exists even if sys.stderr was replaced.
_STDERR = 2

_afterwards: dict[signal.Signals, Any] = {}  # handlers of the signals that are held back


def hold_back() -> None:
    """
    Keep signals pending until release(), or until the process that replaces this one handles them.

    The mask of the main thread is not enough: a thread that is stuck in a task still accepts signals, and a default
    handler would then end the process. So a handler passes them on to the main thread, where they stay pending.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    if threading.current_thread() is threading.main_thread():
        for number in HELD_BACK:
            before = signal.signal(number, _pass_on)
            if before is not _pass_on:
                _afterwards[number] = before


def release() -> None:
    """Deliver the signals that were held back."""
    _restore()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)


def _restore() -> None:
    while _afterwards:
        signal.signal(*_afterwards.popitem())


def _pass_on(number: int, frame: FrameType | None) -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, number)


def _begin_anew() -> None:
    """Give a child that a task has forked the usual reactions to signals: it is no worker."""
    if Signals.entered:
        Signals.entered = False
        _afterwards.clear()
        for number in HELD_BACK:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)


# After that of at_exit.py, which gives SIGTERM back to a handler of this module.
os.register_at_fork(after_in_child=_begin_anew)


def _tell(tell: Callable[[], None]) -> None:
    faulthandler.dump_traceback(_STDERR)
    tell()


class Killed(BaseException):
    """The second signal: end at once. It is a BaseException because it may be raised anywhere."""


class Signals:
    """
    In a with block, signals call *stop*, *quiet* and *tell*; the second signal to stop raises Killed.

    Afterwards the previous handlers are restored. If the process ends with the block (*ends_process*), all signals
    are held back instead: the caller replaces the process, which then handles them, or calls release(). From then on,
    SIGTSTP and SIGTTIN are ignored, and so is a further signal to stop.
    """

    #: Whether the main thread is in such a block, or this process ends with one.
    entered = False

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
            TELLING: lambda number, frame: _tell(tell),
        }
        self._before: dict[signal.Signals, Any] = {}
        self._is_asked = False
        self._may_kill = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            _restore()
            Signals.entered = True
            self._before = {
                number: signal.signal(number, handler) for number, handler in self._handlers.items()
            }
            release()  # the process that started this one may have held them back, so that they are not lost
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._may_kill = False
        if self._ends_process:
            hold_back()
        elif self._before:
            Signals.entered = False
        for number, handler in self._before.items():
            if not self._ends_process:
                signal.signal(number, handler)
            elif self._is_asked or number not in STOPPING:
                # The defaults of SIGTSTP and SIGTTIN would suspend the ending process.
                _afterwards[number] = signal.SIG_IGN
            else:
                _afterwards[number] = handler

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._stop()
        elif self._may_kill:
            self._may_kill = False  # a third signal must not interrupt what the second began
            raise Killed
