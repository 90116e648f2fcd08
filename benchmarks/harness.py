"""
The harness of all benchmarks: a private server, systems that take turns on it, and the cost of a turn.

A turn is a dict of figures. `alternate` lets all systems take a turn in every round, and report.py prints the medians
of the rounds. This module imports Django only after a server runs, because workers of other systems use it, too.

A worker reports its progress with files in a folder that all processes of a run share. That costs Redis nothing, so
the server counts only the system's own work. Marks contain the time of the monotonic clock, which all processes of a
machine share.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

from redis import Redis

ROOT = Path(__file__).resolve().parent.parent
#: Environment variables that tell the processes of a run about the server, the folder, the site and PostgreSQL.
URL, FOLDER, SITE, DATABASE = "BENCHMARK_URL", "BENCHMARK_FOLDER", "BENCHMARK_SITE", "BENCHMARK_DATABASE"
#: The one that says that services are counted.
COUNTED = "BENCHMARK_COUNTED"
PATIENCE = 60.0  # seconds after which a process that has not finished its turn counts as stuck
# The name of our system, which is also the first word of its variants.
OURS = "components"
# Turns of a round where they are short: those of two systems fall into more similar moments, so their ratio is more
# exact.
SLICES = 5

#: The figures of one turn by name; None for a figure that cannot be measured here.
Turn: TypeAlias = dict[str, Any]
#: The turns of each system.
Rounds: TypeAlias = dict[str, list[Turn]]
Call: TypeAlias = Callable[[], object]


class Stuck(Exception):
    """A process ended, or did not finish in time."""


def url() -> str:
    """Return the URL of the run's server."""
    return os.environ[URL]


def socket_path() -> Path:
    """Return the path of the server's Unix socket."""
    return Path(url().removeprefix("unix://").partition("?")[0])


def folder() -> Path:
    """Return the folder for marks and logs."""
    return Path(os.environ[FOLDER])


def mark(name: str) -> None:
    """Write the current time into a file, atomically."""
    unready = folder() / f".{name}"
    unready.write_text(repr(time.monotonic()))
    unready.rename(folder() / name)


@cache
def client() -> Redis:
    """Return this process's plain client, for the harness, and for peers as their users would make it."""
    return Redis.from_url(url())


def say(what: str) -> None:
    """Show the current measurement on a terminal. This is not part of the report."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


# Systems and their turns


@dataclass(frozen=True)
class System:
    """One way to do what a benchmark measures, configured as its documentation shows."""

    name: str
    #: Its guarantees, in the order of the columns of the benchmark's first table.
    promises: Sequence[str]
    #: The object that the benchmark's turns use; each benchmark defines its kind.
    way: Any = None
    #: The required Python package, or a function that returns the version, or None if it is not installed.
    needs: str | Callable[[], str | None] = ""
    #: How to install it.
    install: str = "pip install -r benchmarks/requirements.txt"

    @property
    def version(self) -> str | None:
        """The installed version; None if there is none."""
        if self.name.startswith(OURS):
            return "(this checkout)"
        if not isinstance(self.needs, str):
            return self.needs()
        try:
            return version(self.needs) if self.needs else ""
        except PackageNotFoundError:
            return None


def find_installed(systems: Iterable[System], only: Sequence[str] | None) -> dict[str, System]:
    """Return ours, and the installed ones among *only* (None means all); print a sentence about each missing one."""
    found = {}
    for system in systems:
        if only is not None and system.name not in only and not system.name.startswith(OURS):
            continue
        if system.version is None:
            print(f"{system.name} is not installed and is left out: {system.install}")
        else:
            found[system.name] = system
    return found


def alternate(what: str, names: Iterable[str], rounds: int, turn: Callable[[str], Turn]) -> Rounds:
    """Let each system take a turn in every round. A peer that gets stuck is left out from then on."""
    taken: Rounds = {name: [] for name in names}
    for number in range(1, rounds + 1):
        for name in list(taken):
            say(f"{what}, round {number} of {rounds}: {name}")
            try:
                taken[name].append(turn(name))
            except Stuck as stuck:
                if name.startswith(OURS):
                    raise
                print(f"{name} did not finish and is left out here:\n{stuck}")
                del taken[name]
    say("")
    return taken


# The server, and what it did


class Work(NamedTuple):
    """The work that the server has done up to now."""

    #: The processor time of all its threads, in microseconds.
    cpu: float
    #: The number of commands, including those that scripts call.
    commands: int
    #: The number of reads from sockets. They are round trips as long as a request is below 16 KiB.
    reads: int


@dataclass(frozen=True)
class Bench:
    """A server that nothing else uses."""

    redis: Redis

    def clear(self) -> None:
        """Delete all data and marks."""
        self.redis.flushall()
        for path in folder().iterdir():
            if path.is_file():
                path.unlink()

    def work(self) -> Work:
        info: Any = self.redis.info()
        cpu = (info["used_cpu_sys"] + info["used_cpu_user"]) * 1e6
        return Work(cpu, info["total_commands_processed"], info["total_reads_processed"])

    def memory(self) -> int:
        """Return the bytes that the server uses for its data."""
        info: Any = self.redis.info("memory")
        return int(info["used_memory"])

    @contextmanager
    def cost(self, count: int) -> Iterator[Turn]:
        """
        Measure the block, which does something *count* times.

        Afterwards the turn has its rate per second and, for each of the *count* times: the processor time of this
        process and of the server in microseconds, commands, and reads.
        """
        turn: Turn = {}
        before, cpu, began = self.work(), time.process_time(), time.monotonic()
        yield turn
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        turn |= {"rate": count / seconds, "seconds": seconds, "client": cpu / count * 1e6}
        work = [(after - first) / count for after, first in zip(self.work(), before, strict=True)]
        turn |= dict(zip(("redis", "commands", "reads"), work, strict=True))


@contextmanager
def standing_bench(*, tcp: bool = False, site: str = "") -> Iterator[Bench]:
    """
    Run a server with production settings, except that it never rewrites its append-only file, and set up Django with
    it.
    """
    import django

    from components.embedded import EmbeddedServer

    with TemporaryDirectory(prefix="benchmark-") as path:
        marks = Path(path, "marks")
        marks.mkdir()
        port = _free_port() if tcp else 0
        options = {"auto-aof-rewrite-percentage": "0", "bind": "127.0.0.1", "port": str(port)}
        with EmbeddedServer(Path(path, "redis"), appendfsync="everysec", options=options) as server:
            os.environ[URL] = f"redis://127.0.0.1:{port}/0" if tcp else server.url
            os.environ.update(
                {FOLDER: str(marks), SITE: site, "DJANGO_SETTINGS_MODULE": "benchmarks.settings"}
            )
            django.setup()
            with Redis.from_url(url()) as redis:
                yield Bench(redis)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def standing_database() -> Iterator[bool]:
    """Run a private PostgreSQL if one is installed, before Django is set up, and yield whether it runs."""
    with ExitStack() as stack:
        if find_spec("psycopg") and find_spec("psutil"):
            from tests.support.postgres import postgres
            from tests.support.programs import find_postgres

            if programs := find_postgres():
                os.environ[DATABASE] = str(stack.enter_context(postgres(programs)).folder)
        yield DATABASE in os.environ


# Workers


class Worker:
    """A worker process that a turn has started, with all of its children."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    def wait_for(
        self, what: Callable[[], bool], *, patience: float = PATIENCE, glance: float = 0.001
    ) -> float:
        """Wait until *what* is true; return the time. Raises Stuck with the end of the worker's log."""
        deadline = time.monotonic() + patience
        while not what():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Stuck(self._log.read_text(errors="replace")[-2000:] or "It logged nothing.")
            time.sleep(glance)
        return time.monotonic()

    def wait_for_mark(self, name: str) -> float:
        """Wait for a mark, and return its time."""
        path = folder() / name
        self.wait_for(path.exists)
        return float(path.read_text())

    def cpu(self) -> float | None:
        """Return the seconds of processor time of the process group; None where there is no /proc."""
        ticks = sum(int(fields[11]) + int(fields[12]) for fields in self._stats())
        return ticks / os.sysconf("SC_CLK_TCK") if ticks else None

    def memory(self) -> int | None:
        """Return the bytes of resident memory of the process group; None where there is no /proc."""
        return sum(int(fields[21]) for fields in self._stats()) * os.sysconf("SC_PAGE_SIZE") or None

    def _stats(self) -> Iterator[list[str]]:
        """Yield what /proc says about each process of the group, from the third field on."""
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.process.pid:
                yield fields


@contextmanager
def running(command: Sequence[str]) -> Iterator[Worker]:
    """
    Start a worker, and kill it afterwards. Arguments that begin with "-m" or name a .py file are passed to Python.
    """
    if command[0] == "-m" or command[0].endswith(".py"):
        command = [sys.executable, *command]
    path = folder() / "worker.log"
    with path.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
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


def cpu_of(workers: Sequence[Worker]) -> float | None:
    """Return the seconds of processor time of all workers; None where there is no /proc."""
    each = [worker.cpu() for worker in workers]
    return None if None in each else sum(cpu or 0 for cpu in each)


def used(before: float | None, after: float | None, per: float, extra: float = 0) -> float | None:
    """Return the processor time between two measurements, divided by *per*."""
    return None if before is None or after is None else (after - before + extra) / per


# Processes that begin together

#: A generator function. Everything before its only `yield` is preparation; its return value is the result.
Job: TypeAlias = Callable[..., Generator[None, None, Any]]


class Task(NamedTuple):
    job: Job
    arguments: tuple[Any, ...] = ()


class Crew:
    """Processes that wait for jobs. Each prepares its job, and all begin at the same moment."""

    def __init__(self, size: int) -> None:
        # Not fork, which would share connections, and not a new interpreter for each process.
        context = get_context("forkserver")
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        # Wait, so that no process is still starting during a measurement.
        for pipe in self._pipes:
            _answer(pipe)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()

    def do(self, *tasks: Task) -> list[Any]:
        """Do each task in its own process, all beginning together; return their results. Raises Stuck."""
        pipes = self._pipes[: len(tasks)]
        for pipe, task in zip(pipes, tasks, strict=True):
            pipe.send(task)
        for pipe in pipes:
            _answer(pipe)
        begin = time.monotonic() + 0.02  # by then all processes know their task
        for pipe in pipes:
            pipe.send(begin)
        return [_answer(pipe) for pipe in pipes]


def _answer(pipe: Connection) -> Any:
    if not pipe.poll(PATIENCE):
        raise Stuck(f"A process has not answered for {PATIENCE:.0f} seconds.")
    result, trace = pipe.recv()
    if trace is not None:
        raise Stuck(trace)
    return result


def _serve(pipe: Connection) -> None:
    import django

    django.setup()
    pipe.send((None, None))
    while True:
        task: Task = pipe.recv()
        try:
            job = task.job(*task.arguments)
            next(job)
            pipe.send((None, None))
            time.sleep(max(0.0, pipe.recv() - time.monotonic()))
            pipe.send((_finish(job), None))
        except Exception:  # noqa: BLE001  the parent raises it
            pipe.send((None, traceback.format_exc()))


def _finish(job: Generator[None, None, Any]) -> Any:
    try:
        next(job)
    except StopIteration as end:
        return end.value
    raise RuntimeError("A job of a crew has more than one yield.")


# Times


def seconds(call: Call) -> float:
    """Call a function, and return how long it took."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def beside_ping(calls: Iterable[Call]) -> dict[str, list[float]]:
    """Return the seconds of each call, and of a PING before each call."""
    redis = client()
    redis.ping()
    found: dict[str, list[float]] = {"times": [], "pings": []}
    for call in calls:
        found["pings"].append(seconds(redis.ping))
        found["times"].append(seconds(call))
    return found


def percentile(values: Iterable[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def merged(*turns: Mapping[str, Any]) -> Turn:
    """Return one turn with the figures of all *turns*."""
    return {name: value for turn in turns for name, value in turn.items()}
