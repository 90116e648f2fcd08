"""
The bench on which all systems stand: one private Redis server, a folder, and marks in it.

A worker says how far it is by files in the folder, written by tasks: that costs Redis nothing, so its
counters show the system's own work only. Marks hold the time of the monotonic clock, which all processes
of a machine share.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import Redis

ROOT = Path(__file__).resolve().parent.parent
URL, FOLDER = "BENCHMARK_URL", "BENCHMARK_FOLDER"  # environment variables
PATIENCE = 60.0  # seconds that a worker has for a turn, before it is thought to be stuck
_GLANCE = 0.001  # seconds between two looks


class Stuck(Exception):
    """A worker ended, or did not come to its end in time."""


def url() -> str:
    """The server's URL, here and in workers."""
    return os.environ[URL]


def folder() -> Path:
    """Where marks and logs are, here and in workers."""
    return Path(os.environ[FOLDER])


def mark(name: str) -> None:
    """Write down that this moment has come; whoever reads it reads all of it."""
    unready = folder() / f".{name}"
    unready.write_text(repr(time.monotonic()))
    unready.rename(folder() / name)


@dataclass(frozen=True)
class Work:
    """What the server has done so far, or between two looks."""

    #: Processor time of all its threads, microseconds.
    cpu: float
    #: Commands, those that scripts call included.
    commands: int
    #: Reads from sockets: round trips, as long as a request is below 16 KiB.
    reads: int

    def __sub__(self, other: Work) -> Work:
        return Work(self.cpu - other.cpu, self.commands - other.commands, self.reads - other.reads)


@dataclass(frozen=True)
class Bench:
    """What turns need: a client of the server, which nobody else uses."""

    redis: Redis

    def clear(self) -> None:
        """Forget all tasks and marks."""
        self.redis.flushall()
        for path in folder().iterdir():
            if path.is_file():
                path.unlink()

    def work(self) -> Work:
        info: Any = self.redis.info()
        cpu = (info["used_cpu_sys"] + info["used_cpu_user"]) * 1e6
        return Work(cpu, info["total_commands_processed"], info["total_reads_processed"])

    def memory(self) -> int:
        """Bytes that the server uses for its data."""
        info: Any = self.redis.info("memory")
        return int(info["used_memory"])


def say(what: str) -> None:
    """Where we are, for who looks on; no part of the report."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


class Worker:
    """A worker process that a turn has started, with all of its children."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    def wait_for(
        self, what: Callable[[], bool], *, patience: float = PATIENCE, glance: float = _GLANCE
    ) -> float:
        """The time at which *what* came true. Raises Stuck with the end of the worker's log."""
        deadline = time.monotonic() + patience
        while not what():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Stuck(self._log.read_text(errors="replace")[-2000:] or "it logged nothing")
            time.sleep(glance)
        return time.monotonic()

    def wait_for_mark(self, name: str) -> float:
        """The time that is in the mark."""
        path = folder() / name
        self.wait_for(path.exists)
        return float(path.read_text())

    def cpu(self) -> float | None:
        """Seconds of processor time of the whole process group, where there is a /proc to tell."""
        ticks = sum(int(fields[11]) + int(fields[12]) for fields in self._stats())
        return ticks / os.sysconf("SC_CLK_TCK") if ticks else None

    def memory(self) -> int | None:
        """Bytes of memory that the whole process group has, where there is a /proc to tell."""
        return sum(int(fields[21]) for fields in self._stats()) * os.sysconf("SC_PAGE_SIZE") or None

    def _stats(self) -> Iterator[list[str]]:
        """What /proc says of each process of the group, from the third field on."""
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.process.pid:
                yield fields


@contextmanager
def running(command: Sequence[str]) -> Iterator[Worker]:
    """Start a worker, and kill it afterwards: what it holds is of no interest then."""
    path = folder() / "worker.log"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield Worker(process, path)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
