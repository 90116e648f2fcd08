"""
Processes that wait for jobs, get ready each for itself, and begin all at the same moment.

A job is a generator function. What it does before its `yield` is preparation: connections, scripts, first
calls. What follows is measured, and what it returns comes back. The processes stay for the whole run, so that turns
of all systems can alternate without a boot between them.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Generator, Sequence
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeAlias

import django
from redis import Redis

from benchmarks.bench import PATIENCE, Stuck, url

#: Runs up to its `yield`, then on from there; its value is the result.
Job: TypeAlias = Callable[..., Generator[None, None, Any]]

_BREATH = 0.02  # seconds between "all are ready" and the beginning: each has been told by then


class Task(NamedTuple):
    job: Job
    arguments: tuple[Any, ...] = ()


@cache
def client() -> Redis:
    """This process's plain client, for what is no system's own work; peers use it too, as their users would."""
    return Redis.from_url(url())


class Crew:
    """As many processes as the largest turn needs; those that a turn does not need wait, and cost nothing."""

    def __init__(self, size: int) -> None:
        # Neither fork, which would share connections, nor a boot of the interpreter for each.
        context = get_context("forkserver")
        self._pipes: list[Connection] = []
        self._processes = []
        for _ in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()

    def do(self, tasks: Sequence[Task]) -> list[Any]:
        """Each task in a process of its own, all beginning together; their results. Raises Stuck."""
        pipes = self._pipes[: len(tasks)]
        for pipe, task in zip(pipes, tasks, strict=True):
            pipe.send(task)
        for pipe in pipes:
            _answer(pipe)
        begin = time.monotonic() + _BREATH
        for pipe in pipes:
            pipe.send(begin)
        return [_answer(pipe) for pipe in pipes]


def _answer(pipe: Connection) -> Any:
    if not pipe.poll(PATIENCE):
        raise Stuck(f"a process has not answered for {PATIENCE:.0f} seconds")
    result, trace = pipe.recv()
    if trace is not None:
        raise Stuck(trace)
    return result


def _serve(pipe: Connection) -> None:
    django.setup()
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
