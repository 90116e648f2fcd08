"""
Processes: several programs under one parent, which does nothing else.

Each child is a new program in its own session, so Ctrl-C reaches only the parent. All workers hold the read end of
one pipe, their lifeline. Other programs know no lifeline: they get SIGTERM, from a watcher if the parent is killed.
Signals arrive as bytes in a pipe of the parent, so its loop sees each of them.
"""

import logging
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from select import select
from threading import Thread
from typing import IO, Literal

from components.embedded import Watcher
from components.workers.loop import DRAINED, UNHEALTHY
from components.workers.reexec import QUIETED
from components.workers.signals import QUIETING, STOPPING, TELLING

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
_STDERR = 2  # the descriptor
_LONGEST_LINE = 65_536  # bytes; a longer one is passed on in parts
_LAST_WORDS = 1.0  # seconds to pass on what the last child has written, which its own children may still do


@dataclass(frozen=True)
class Program:
    """What a child runs."""

    name: str
    command: Sequence[str]
    #: A command of this app that takes --lifeline and heeds the signals of workers.
    is_worker: bool = True


@dataclass
class _Child:
    program: Program
    process: subprocess.Popen[bytes] | None = None
    #: Stops a program that is no worker if the parent is killed.
    watcher: Watcher | None = None
    #: Passes on what the process writes.
    voice: Thread | None = None
    started_at: float = 0.0
    #: When to start the next process; None while one is running.
    starts_at: float | None = 0.0
    #: How many processes in a row have failed soon after their start.
    failures: int = 0
    #: The exit code of the last process.
    code: int = DRAINED


class Processes:
    """
    Runs a process for each of *programs*. If one ends without being asked to, it is replaced ("replace"), it is not
    ("leave"), or all others are stopped, too ("stop"). When asked to stop, the processes have *patience* seconds, or
    MARGIN if asked twice; those that need longer are killed. With *labels* all of them write to stderr, each line
    with the name of its program.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        patience: float,
        on_end: Literal["replace", "leave", "stop"] = "replace",
        labels: bool = False,
    ) -> None:
        self._children = [_Child(each) for each in programs]
        self._patience = patience
        self._on_end_of_one = on_end
        self._width = max(len(each.name) for each in programs) if labels else 0
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
                while any(child.process or child.starts_at is not None for child in self._children):
                    self._start_due()
                    for number in _wait(heard, self._pause()):
                        self._on_signal(number)
                    self._tell_next()
                    self._look()
        finally:
            self._let_go()
            os.close(self._lifeline)
            for child in self._children:
                if child.voice:
                    child.voice.join(_LAST_WORDS)
        return max(child.code for child in self._children)

    def _alive(self) -> list[subprocess.Popen[bytes]]:
        return [child.process for child in self._children if child.process]

    def _workers(self) -> list[subprocess.Popen[bytes]]:
        return [child.process for child in self._children if child.process and child.program.is_worker]

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
                    self._start(child)
                # There is no such program, or no memory or process slot is left; others may free some.
                except OSError as error:
                    self._replace(child, f"{child.program.name} cannot be started: {error}", UNHEALTHY)

    def _start(self, child: _Child) -> None:
        program = child.program
        held, own = [self._lifeline], ["--lifeline", str(self._lifeline), *([QUIETED] * self._is_quiet)]
        if not program.is_worker:
            held, own = [], []
        # A SIGTSTP stays pending until the worker handles it: the worker inherits the signal mask, and signals.py
        # lifts it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [QUIETING] * program.is_worker)
        try:
            process = child.process = subprocess.Popen(
                [*program.command, *own],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if self._width else None,
                stderr=subprocess.STDOUT if self._width else None,
                env={**os.environ, "PYTHONUNBUFFERED": "1"} if self._width else None,
                pass_fds=held,
                start_new_session=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if process.stdout:
            label = f"{program.name:<{self._width}} | ".encode()
            child.voice = Thread(target=_pass_on, args=(process.stdout, label), name="voice", daemon=True)
            child.voice.start()
        if not program.is_worker:
            child.watcher = Watcher(process.pid)
        logger.info("Process %d of %s has started.", process.pid, program.name)

    def _on_signal(self, number: int) -> None:
        if number in STOPPING:
            self._stop()
        elif number == QUIETING:
            self._is_quiet = True
            for process in self._workers():
                process.send_signal(QUIETING)
        elif number == TELLING:
            self._to_tell = self._workers()

    def _tell_next(self) -> None:
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
                if child.process and not child.program.is_worker:
                    child.process.terminate()
        else:
            self._kill_at = min(self._kill_at, now + MARGIN)
            for process in self._alive():
                for number in _AT_ONCE:
                    process.send_signal(number)

    def _let_go(self) -> None:
        """Close the lifeline. Closing it again has no effect."""
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)

    def _look(self) -> None:
        """Note which processes have ended, and kill the others if their time is over."""
        for child in self._children:
            if child.process and _has_ended(child.process):
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
        if child.watcher:
            child.watcher.close()
        child.process = child.watcher = None
        code = process.wait()
        # A process that is asked to stop while it starts dies from the signal; it holds nothing yet.
        was_asked = self._is_stopping and -code in STOPPING
        code_for_all = DRAINED if was_asked else code if code >= 0 else UNHEALTHY
        self._replace(child, f"Process {process.pid} of {child.program.name} {_cause(code)}", code_for_all)

    def _replace(self, child: _Child, event: str, code: int) -> None:
        """Start a replacement later, unless the parent is stopping or does not replace processes."""
        child.code = code
        level = logging.WARNING if code else logging.INFO
        if self._is_stopping or self._on_end_of_one == "leave":
            logger.log(level, "%s.", event)
            return
        if self._on_end_of_one == "stop":
            logger.log(level, "%s; stopping the others.", event)
            self._stop()
            return
        lived = time.monotonic() - child.started_at
        is_well = code == DRAINED and child.program.is_worker
        child.failures = 0 if is_well else 1 if lived > _LONGEST_PAUSE else child.failures + 1
        pause = min(_LONGEST_PAUSE, 2.0 ** (child.failures - 1)) if child.failures else 0.0
        child.starts_at = time.monotonic() + pause
        logger.log(level, "%s; starting another%s.", event, f" in {pause:g} s" if pause else "")


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return True if the process has ended. Its id is not free yet: a watcher must not signal another's process."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _pass_on(pipe: IO[bytes], label: bytes) -> None:
    """Write the lines that come out of *pipe* to stderr, each after *label*."""
    with pipe:
        for line in iter(lambda: pipe.readline(_LONGEST_LINE), b""):
            # Raised when nobody reads the log any more. The program that writes must not wait for that.
            with suppress(OSError):
                os.write(_STDERR, label + line.rstrip(b"\n") + b"\n")


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
    # This comes first: a handler alone would swallow a signal.
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda number, frame: None) for number in _HEEDED}
    try:
        yield heard
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(heard)
        os.close(write)


def _wait(heard: int, seconds: float) -> bytes:
    select([heard], [], [], None if seconds == float("inf") else seconds)
    with suppress(BlockingIOError):
        return os.read(heard, 4096)
    return b""
