"""
What a worker process writes into the ledger: a file of its own, each line by one write(), which no SIGKILL tears.

    B <id> <run> <seconds>          a run of a task has begun
    E <id> <run> <seconds>          it has come to its end: the effect
    R <id> <run> <seconds>          it ends by an exception
    P <seconds> <open> <begun>      the pulse of a worker that has entered its loop: how many runs are open, and begun

Seconds are of CLOCK_MONOTONIC, which all processes of a machine share. A worker whose pulse fails is stopped, dead
or gets no processor; so the pulse says when a worker was really idle.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from django.apps import AppConfig

BEAT = 0.1  # seconds

_runs = count(1)
_guard = threading.Lock()
_open = _begun = 0


class Chaos(AppConfig):
    """Takes the pulse of the worker."""

    name = "tests.chaos"

    def ready(self) -> None:
        if "runworker" in sys.argv:
            threading.Thread(target=_pulse, name="pulse", daemon=True).start()


@contextmanager
def recorded(task_id: str) -> Iterator[None]:
    """The run of a task, from its begin to its end."""
    run = next(_runs)
    _count(1)
    _write("B", task_id, run, time.monotonic())
    try:
        yield
    except BaseException:
        _write("R", task_id, run, time.monotonic())
        raise
    else:
        _write("E", task_id, run, time.monotonic())
    finally:
        _count(-1)


def _count(change: int) -> None:
    global _open, _begun
    with _guard:
        _open += change
        _begun += change > 0


def _pulse() -> None:
    while True:
        if any(thread.name == "listener" for thread in threading.enumerate()):
            _write("P", time.monotonic(), _open, _begun)
        time.sleep(BEAT)


def _write(*words: object) -> None:
    os.write(_file(), (" ".join(map(str, words)) + "\n").encode())


def _file() -> int:
    global _descriptor
    with _guard:
        if _descriptor < 0:
            path = Path(os.environ["CHAOS_LEDGER"], f"{os.getpid()}.{time.monotonic_ns()}.runs")
            _descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        return _descriptor


_descriptor = -1
