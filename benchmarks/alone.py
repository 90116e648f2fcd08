"""What only ours is asked for: the engine without Django, latency, the cost of idling, I/O against a bare pool."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks import tasks
from benchmarks.bench import Bench, folder, running
from benchmarks.peers.base import FIRST
from benchmarks.peers.ours import Ours, OursNapping
from benchmarks.turns import Turn, take_turn
from components.services.queues import Consumer, Finished, NewTask, Step, TaskQueue
from components.services.queues.formats import write_result

BATCH = 100  # tasks that the engine claims, and acknowledges, in one step
SAMPLES = 1_000  # ten are above the p99
_PAUSE = 0.01  # seconds between two samples of latency: the worker is idle again
_KEPT = 86_400.0  # seconds that a result is kept, as by default
_IDLE = 6.0  # seconds: a heartbeat is among them


def engine(bench: Bench, count: int) -> Turn:
    """push_many() and advance() in this process; results are of the size that Django's have, and none is run."""
    bench.clear()
    queue, consumer = TaskQueue(), Consumer()
    consumer.renew(["default"])
    empty = bench.work()
    began = time.monotonic()
    queue.push_many([NewTask(name=tasks.noop.module_path)] * count)
    enqueued_in = time.monotonic() - began
    full = bench.work()
    began = time.monotonic()
    finished: list[Finished] = []
    while True:
        step = consumer.advance(consumer.request({"default": BATCH}, BATCH, finished))
        if not step.claimed:
            break
        finished = succeeded(step)
    drained_in = time.monotonic() - began
    drained = bench.work()
    return Turn(
        enqueue_rate=count / enqueued_in,
        drain_rate=count / drained_in,
        enqueue_cpu=(full - empty).cpu / count,
        drain_cpu=(drained - full).cpu / count,
        commands=(drained - empty).commands / count,
        reads=(drained - full).reads / count,
    )


def succeeded(step: Step) -> list[Finished]:
    """What a worker would hand in if all that it has claimed had returned None."""
    return [
        Finished(
            task, "successful", _KEPT, write_result(task.record, task.run, task.errors, step.now, "null")
        )
        for task in step.claimed
    ]


@dataclass(frozen=True)
class Latency:
    """Seconds from the call of enqueue() to the first line of the task, and of PING between them."""

    starts: list[float]
    pings: list[float]
    #: The part of one processor that the idle worker took at most; None where the system does not tell.
    idle_cpu: float | None


def latency(bench: Bench, peer: Ours) -> Latency:
    """Enqueue to an idle worker, one task at a time. Raises Stuck."""
    bench.clear()
    arrivals, pings = folder() / "arrivals", []
    with running(peer.worker()) as worker:
        tasks.note.enqueue(FIRST)
        worker.wait_for_mark(FIRST)
        time.sleep(1)
        before = worker.cpu()
        time.sleep(_IDLE)
        after = worker.cpu()
        for _ in range(SAMPLES):
            time.sleep(_PAUSE)
            began = time.monotonic()
            bench.redis.ping()
            pings.append(time.monotonic() - began)
            tasks.arrive.enqueue(time.monotonic())
        worker.wait_for(lambda: len(arrivals.read_text().splitlines()) == SAMPLES)
    starts = [float(line) for line in arrivals.read_text().splitlines()]
    tick = 1 / os.sysconf("SC_CLK_TCK")
    idle = (after - before + tick) / _IDLE if before is not None and after is not None else None
    return Latency(starts, pings, idle)


def naps(bench: Bench, peer: OursNapping, count: int) -> tuple[float, float]:
    """Tasks per second of 10 ms each: of a bare pool of threads, and of a worker. Raises Stuck."""
    with ThreadPoolExecutor(peer.CONCURRENCY) as pool:
        began = time.monotonic()
        for _ in pool.map(time.sleep, [peer.SECONDS] * count):
            pass
        bare = count / (time.monotonic() - began)
    return bare, take_turn(bench, peer, count).drain_rate
