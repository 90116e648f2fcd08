"""
Several worker processes under one parent, which claims nothing itself.

Each child runs the same command (it is not a fork) in its own session, so Ctrl-C reaches only the parent. All
children hold the read end of one pipe, their lifeline. The parent closes its end to stop them, and the kernel closes
it if the parent is killed. A child that ends without being asked to is replaced: at once if it exited with 0 (after a
limit), otherwise after 1, 2, 4 ... 30 s. Signals arrive as bytes in a pipe of the parent, so its loop sees each of
them.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from select import select

from components.kit.commands.restarting import QUIETED
from components.kit.worker.loop import DRAINED, UNHEALTHY
from components.kit.worker.signals import QUIETING, STOPPING, TELLING

logger = logging.getLogger(__name__)

# Seconds beyond the shutdown timeout, since a child that is ending may wait that long for Redis.
MARGIN = 10.0
# The longest pause, in seconds, before a failing child is started again. A child that lived longer counts as new.
_LONGEST_PAUSE = 30.0
# Seconds between the stack dumps of two children, so that their output does not mix.
_APART = 0.25
_HEEDED = (*STOPPING, QUIETING, TELLING, signal.SIGCHLD)
# Two different signals, because the kernel could merge two equal ones.
_AT_ONCE = (signal.SIGTERM, signal.SIGINT)


@dataclass
class _Child:
    """One slot for a worker, and the process that fills it now."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    #: When to start the next process; None while one is running.
    starts_at: float | None = 0.0
    #: How many processes in a row have failed soon after their start.
    failures: int = 0
    #: The exit code of the last process.
    code: int = DRAINED


class Processes:
    """
    Runs *number* processes of *command*, and gives each its number and its lifeline.

    Without *restarts*, no process is replaced. When asked to stop, the processes have *patience* seconds, or MARGIN
    if asked twice; those that need longer are killed.
    """

    def __init__(
        self, number: int, command: Sequence[str], *, patience: float, restarts: bool = True
    ) -> None:
        self._children = [_Child(each + 1) for each in range(number)]
        self._command = command
        self._patience = patience
        self._restarts = restarts
        self._is_quiet = False
        self._is_stopping = False
        self._kill_at = float("inf")
        self._to_tell: list[subprocess.Popen[bytes]] = []
        self._tell_at = 0.0
        self._lifeline = self._held = -1  # the two ends of the pipe

    def run(self) -> int:
        """Run until all processes have ended, and return the worst of their last exit codes. Main thread only."""
        self._lifeline, self._held = os.pipe()
        try:
            with _heard_signals() as heard:
                while self._is_going():
                    self._start_due()
                    for number in _wait(heard, self._pause()):
                        self._on_signal(number)
                    self._tell_next()
                    self._look()
        finally:
            self._let_go()
            os.close(self._lifeline)
        return max(child.code for child in self._children)

    def _is_going(self) -> bool:
        return any(child.process or child.starts_at is not None for child in self._children)

    def _alive(self) -> list[subprocess.Popen[bytes]]:
        return [child.process for child in self._children if child.process]

    def _pause(self) -> float:
        """Return the number of seconds until something is due, if no signal arrives."""
        starts = [child.starts_at for child in self._children if child.starts_at is not None]
        tells = [self._tell_at] if self._to_tell else []
        return max(0.0, min([self._kill_at, *tells, *starts]) - time.monotonic())

    def _start_due(self) -> None:
        for child in self._children:
            if child.starts_at is not None and child.starts_at <= time.monotonic():
                child.started_at, child.starts_at = time.monotonic(), None
                try:
                    child.process = self._start(child.number)
                except OSError as error:  # no memory or process slot is left; others may free some
                    self._replace(child, f"Worker {child.number} cannot be started: {error}", UNHEALTHY)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        own = ["--child", str(number), "--lifeline", str(self._lifeline), *([QUIETED] * self._is_quiet)]
        # A SIGTSTP stays pending until the child handles it: the child inherits the signal mask, and signals.py lifts
        # it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [QUIETING])
        try:
            return subprocess.Popen(
                [*self._command, *own],
                stdin=subprocess.DEVNULL,
                pass_fds=[self._lifeline],
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _on_signal(self, number: int) -> None:
        if number in STOPPING:
            self._stop()
        elif number == QUIETING:
            self._is_quiet = True
            self._send(QUIETING)
        elif number == TELLING:
            self._to_tell = self._alive()

    def _tell_next(self) -> None:
        """Ask the next child to write its stacks."""
        if self._to_tell and time.monotonic() >= self._tell_at:
            self._to_tell.pop(0).send_signal(TELLING)
            self._tell_at = time.monotonic() + _APART

    def _stop(self) -> None:
        now = time.monotonic()
        if not self._is_stopping:
            self._is_stopping = True
            logger.info("Stopping %d processes.", len(self._alive()))
            self._kill_at = now + self._patience
            self._let_go()
            for child in self._children:
                child.starts_at = None
        else:
            self._kill_at = min(self._kill_at, now + MARGIN)
            self._send(*_AT_ONCE)

    def _let_go(self) -> None:
        """Close the lifeline. Closing it again has no effect."""
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)

    def _send(self, *numbers: signal.Signals) -> None:
        for process in self._alive():
            for number in numbers:
                process.send_signal(number)

    def _look(self) -> None:
        """Note which processes have ended, and kill the others if their time is over."""
        for child in self._children:
            if child.process and child.process.poll() is not None:
                self._on_end(child, child.process)
        if time.monotonic() >= self._kill_at:
            self._kill_at = float("inf")
            for process in self._alive():
                logger.error(
                    "Process %d did not stop in time and is killed. Other workers take over its tasks when "
                    "their leases end.",
                    process.pid,
                )
                process.kill()

    def _on_end(self, child: _Child, process: subprocess.Popen[bytes]) -> None:
        child.process = None
        code = process.returncode
        # A process that is asked to stop while it starts dies from the signal; it holds no task yet.
        was_asked = self._is_stopping and -code in STOPPING
        code_for_all = DRAINED if was_asked else code if code >= 0 else UNHEALTHY
        self._replace(child, f"Process {process.pid} of worker {child.number} {_cause(code)}", code_for_all)

    def _replace(self, child: _Child, event: str, code: int) -> None:
        """Start a replacement later, unless the parent is stopping or does not replace processes."""
        child.code = code
        level = logging.WARNING if code else logging.INFO
        if self._is_stopping or not self._restarts:
            logger.log(level, "%s.", event)
            return
        lived = time.monotonic() - child.started_at
        child.failures = 0 if code == DRAINED else 1 if lived > _LONGEST_PAUSE else child.failures + 1
        pause = min(_LONGEST_PAUSE, 2.0 ** (child.failures - 1)) if child.failures else 0.0
        child.starts_at = time.monotonic() + pause
        logger.log(level, "%s; starting another%s.", event, f" in {pause:g} s" if pause else "")


def _cause(code: int) -> str:
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


@contextmanager
def _heard_signals() -> Iterator[int]:
    """Return a descriptor from which signals can be read, one byte each: the signal's number."""
    heard, write = os.pipe()
    os.set_blocking(heard, False)
    os.set_blocking(write, False)
    before = {number: signal.signal(number, lambda number, frame: None) for number in _HEEDED}
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield heard
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(heard)
        os.close(write)


def _wait(heard: int, seconds: float) -> bytes:
    """Return the signals that have arrived, after waiting for at most *seconds*."""
    select([heard], [], [], None if seconds == float("inf") else seconds)
    with suppress(BlockingIOError):
        return os.read(heard, 4096)
    return b""
