"""
One turn of one system: enqueue all, start the worker, wait until the last task is acknowledged.

A worker's boot is in nobody's figure: the time of draining begins when the first task of the queue writes its
mark, and ends when nothing is queued or unacknowledged. The server's work while draining does contain
what a booting worker asks of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.bench import Bench, running
from benchmarks.peers.base import FIRST, LAST, Peer


@dataclass(frozen=True)
class Turn:
    """Rates are tasks per second; all else is per task."""

    enqueue_rate: float
    drain_rate: float
    #: The server's processor time, microseconds.
    enqueue_cpu: float
    drain_cpu: float
    #: Commands, those in scripts included, for the whole life of a task.
    commands: float
    #: Of the worker.
    reads: float
    #: Seconds from the start of the worker to its first task; 0 where there is no worker.
    boot: float = 0.0


def take_turn(bench: Bench, peer: Peer, tasks: int) -> Turn:
    """Measure *peer* once. Raises Stuck."""
    count = peer.count(tasks)
    bench.clear()
    empty = bench.work()
    began = time.monotonic()
    peer.enqueue(count)
    enqueued_in = time.monotonic() - began
    full = bench.work()
    started = time.monotonic()
    with running(peer.worker()) as worker:
        first = worker.wait_for_mark(FIRST)
        worker.wait_for_mark(LAST)
        drained_in = worker.wait_for(lambda: peer.is_done(bench.redis)) - first
        drained = bench.work()
    return Turn(
        enqueue_rate=count / enqueued_in,
        drain_rate=count / drained_in,
        enqueue_cpu=(full - empty).cpu / count,
        drain_cpu=(drained - full).cpu / count,
        commands=(drained - empty).commands / count,
        reads=(drained - full).reads / count,
        boot=first - started,
    )
