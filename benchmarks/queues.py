"""
Task queues with one worker process each: ours, used through Django's Tasks API, and others.

Figures exclude the start of workers: draining is timed from the mark of the first task until nothing is queued or
unacknowledged. The server's work while draining does include the requests of a starting worker.
"""

from __future__ import annotations

import os
import platform
import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from statistics import median

from benchmarks import tasks
from benchmarks.harness import (
    OURS,
    Bench,
    Crew,
    Rounds,
    System,
    Turn,
    alternate,
    folder,
    percentile,
    running,
    say,
    used,
)
from benchmarks.peers import FIRST, LAST, Peer, bullmq_version, one_by_one, sidekiq_version
from benchmarks.report import (
    Bar,
    at_least,
    at_most,
    introduce,
    mid,
    middle,
    over,
    print_bars,
    print_rounds,
    print_table,
    span,
    times,
)
from components.services.queues import Consumer, Finished, NewTask, Step, TaskQueue

ENGINE = "components, engine alone"
BATCH = 100  # tasks that the engine claims and acknowledges in one step
# The number of threads and the seconds of tasks that sleep, and the most rounds of them, since they vary little.
CONCURRENCY, NAP, NAP_ROUNDS = 32, 0.01, 3

_WORKER = ["manage.py", "runworker", "--no-reload", "--verbosity", "0"]
PROMISES = ["system", "worker", "acks", "retries", "results", "priorities"]
#: A peer's way is its module of benchmarks.peers.
SYSTEMS = [
    System(OURS, ["runworker", "yes, leases renewed", "on (5 attempts)", "on (1 day)", "yes, -100 to 100"]),
    System(
        "huey",
        ["1 thread", "no: lost with the worker", "off", "unless None", "no (other storage)"],
        "huey",
        "huey",
    ),
    System(
        "dramatiq",
        ["1 process, 8 threads", "yes", "on (20)", "off", "within a worker"],
        "dramatiq",
        "dramatiq",
    ),
    System(
        "rq",
        ["SimpleWorker", "lost job is marked failed", "off", "on (500 s)", "by queue"],
        "rq:SIMPLE",
        "rq",
    ),
    System(
        "rq-fork",
        ["a fork per job", "lost job is marked failed", "off", "on (500 s)", "by queue"],
        "rq:FORKING",
        "rq",
    ),
    System(
        "celery",
        ["solo pool", "before the task runs: lost with the worker", "off", "off", "off"],
        "celery",
        "celery",
    ),
    System("saq", ["10 coroutines", "yes (sweep each 60 s)", "off", "on (600 s)", "no"], "saq", "saq"),
    System(
        "bullmq",
        ["1 process, concurrency 100", "yes, locks renewed", "off", "on (for ever)", "yes"],
        "programs:BULLMQ",
        bullmq_version,
        "npm install -g bullmq ioredis, or in benchmarks/",
    ),
    System(
        "sidekiq",
        ["1 process, 10 threads", "no: lost with the worker", "on (25)", "off", "by queue"],
        "programs:SIDEKIQ",
        sidekiq_version,
        "apt install ruby-sidekiq",
    ),
]
#: The share of the tasks that slow peers get; others get all.
SHARES = {
    "huey": 0.5,
    "dramatiq": 0.25,
    "rq": 0.025,
    "rq-fork": 0.005,
    "celery": 0.1,
    "saq": 0.1,
    "sidekiq": 0.5,
}
USUAL = [system.name for system in SYSTEMS if system.name != "rq-fork"]
#: How many times as fast as each of these ours must drain.
DRAIN_BARS = {"huey": 4, "dramatiq": 6, "rq": 40, "celery": 20, "bullmq": 1.5}
#: How many times as fast as each of these ours must enqueue one by one.
ENQUEUE_BARS = {"dramatiq": 1, "saq": 1}


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    systems = introduce(PROMISES, SYSTEMS, USUAL if options.only is None else options.only)
    if len(systems) > 1 or options.only is None:
        python = platform.python_version()
        print(f"threadmill is left out: it needs Python 3.14, and this is Python {python}.")
    counts = {name: max(100, round(options.tasks * SHARES.get(name, 1))) for name in (ENGINE, *systems)}
    turns = alternate(
        "queues", [ENGINE, *systems], options.rounds, lambda name: turn(bench, systems, name, counts[name])
    )
    report(turns, counts)
    say("latency")
    idle = latency(bench, options.samples)
    naps = [nap(bench, options.naps) for _ in range(min(options.rounds, NAP_ROUNDS))]
    report_ours(idle, naps)
    print_bars([*bars_of(turns), *bars_of_ours(idle, naps)])


def turn(bench: Bench, systems: dict[str, System], name: str, count: int) -> Turn:
    if name == ENGINE:
        return engine(bench, count)
    return drain(bench, ours() if name == OURS else find_peer(systems[name].way), count)


def ours(noop: object = tasks.noop.enqueue, *options: str) -> Peer:
    """Return our system, from Task.enqueue() to manage.py runworker with its defaults."""
    return Peer(one_by_one(tasks.note.enqueue, noop), [*_WORKER, *options], is_done)  # type: ignore[arg-type]


def is_done(_redis: object) -> bool:
    stats = TaskQueue().stats("default")
    return not stats.ready and not stats.running


def find_peer(way: str) -> Peer:
    module, _, name = way.partition(":")
    found: Peer = getattr(import_module(f"benchmarks.peers.{module}"), name or "PEER")
    return found


def drain(bench: Bench, peer: Peer, count: int) -> Turn:
    """Enqueue all tasks, start the worker, and wait until the last task is acknowledged. Raises Stuck."""
    bench.clear()
    with bench.cost(count) as pushed:
        own = peer.enqueue(count)
    full, started = bench.work(), time.monotonic()
    with running(peer.worker) as worker:
        first = worker.wait_for_mark(FIRST)
        booted = worker.cpu()
        worker.wait_for_mark(LAST)
        done = worker.wait_for(lambda: peer.is_done(bench.redis))
        work, cpu = bench.work(), used(booted, worker.cpu(), count / 1e6)
    return {
        "enqueue": count / own if own else pushed["rate"],
        "drain": count / (done - first),
        "producer": pushed["client"],
        "worker": cpu,
        "enqueue redis": pushed["redis"],
        "drain redis": (work.cpu - full.cpu) / count,
        "commands": pushed["commands"] + (work.commands - full.commands) / count,
        "reads": (work.reads - full.reads) / count,
        "boot": first - started,
    }


def engine(bench: Bench, count: int) -> Turn:
    """Drain in this process with push_many() and advance(), and run nothing; results are as large as Django's."""
    bench.clear()
    queue, consumer = TaskQueue(), Consumer()
    consumer.renew(["default"])
    with bench.cost(count) as pushed:
        queue.push_many([NewTask(name=tasks.noop.module_path)] * count)
    finished: list[Finished] = []
    with bench.cost(count) as drained:
        while (step := consumer.advance(consumer.request({"default": BATCH}, BATCH, finished))).claimed:
            finished = succeeded(step)
    return {
        "enqueue": pushed["rate"],
        "drain": drained["rate"],
        "enqueue redis": pushed["redis"],
        "drain redis": drained["redis"],
        "commands": pushed["commands"] + drained["commands"],
        "reads": drained["reads"],
        "boot": 0.0,
    }


def succeeded(step: Step) -> list[Finished]:
    """
    Return the results that a worker stores if all of its claimed tasks returned None; they are kept for a day, the
    default.
    """
    at = b"%d" % (step.now.timestamp() * 1e6)
    return [
        Finished(task, "successful", 86_400.0, b"\n".join((task.record, task.run, at, task.errors, b"null")))
        for task in step.claimed
    ]


def latency(bench: Bench, samples: int) -> Turn:
    """
    Enqueue to an idle worker, one task at a time; return the seconds until its first line, and of PINGs. Raises
    Stuck.
    """
    bench.clear()
    # The seconds of idle time include a heartbeat.
    arrivals, pings, idle = folder() / "arrivals", [], 6.0
    with running(_WORKER) as worker:
        tasks.note.enqueue(FIRST)
        worker.wait_for_mark(FIRST)
        time.sleep(1)
        before = worker.cpu()
        time.sleep(idle)
        after = worker.cpu()
        for _ in range(samples):
            time.sleep(0.01)  # the worker is idle again
            began = time.monotonic()
            bench.redis.ping()
            pings.append(time.monotonic() - began)
            tasks.arrive.enqueue(time.monotonic())
        worker.wait_for(lambda: arrivals.exists() and len(arrivals.read_text().splitlines()) == samples)
    starts = [float(line) for line in arrivals.read_text().splitlines()]
    # Processor time is measured in ticks; this is its upper limit.
    return {"starts": starts, "pings": pings, "idle": used(before, after, idle, 1 / os.sysconf("SC_CLK_TCK"))}


def nap(bench: Bench, count: int) -> tuple[float, float]:
    """Return the tasks of 10 ms per second that a bare pool of threads and a worker do. Raises Stuck."""
    say("tasks of 10 ms")
    with ThreadPoolExecutor(CONCURRENCY) as pool:
        began = time.monotonic()
        list(pool.map(time.sleep, [NAP] * count))
        bare = count / (time.monotonic() - began)
    peer = ours(lambda: tasks.nap.enqueue(NAP), "--concurrency", str(CONCURRENCY))
    return bare, drain(bench, peer, count)["drain"]


def report(turns: Rounds, counts: dict[str, int]) -> None:
    turns = {f"{name}, {counts[name]:,} tasks": rounds for name, rounds in turns.items()}
    first = f"{OURS}, {counts[OURS]:,} tasks"
    print_rounds(
        "system",
        turns,
        mid("enqueue/s", "enqueue"),
        mid("drain/s", "drain"),
        span("drain"),
        over(first, "enqueue", ".2f", "ours/theirs: enqueue"),
        over(first, "drain", ".1f", "drain"),
        mid("boot, s", "boot", ".1f"),
    )
    print_rounds(
        "system",
        turns,
        mid("Redis CPU: enqueue µs", "enqueue redis", ".1f"),
        mid("drain µs", "drain redis", ".1f"),
        mid("commands", "commands", ".1f"),
        mid("reads while draining", "reads", ".2f"),
    )


def report_ours(idle: Turn, naps: list[tuple[float, float]]) -> None:
    print_table(
        ["idle worker", "p50 ms", "p99 ms"],
        (
            [name, *(f"{percentile(idle[key], percent) * 1e3:.2f}" for percent in (50, 99))]
            for name, key in (("enqueue() to start", "starts"), ("PING", "pings"))
        ),
    )
    bare, worker = (median(column) for column in zip(*naps, strict=True))
    names = f"a bare pool of {CONCURRENCY} threads", f"runworker --concurrency {CONCURRENCY}"
    rows = [[name, f"{rate:,.0f}"] for name, rate in zip(names, (bare, worker), strict=True)]
    print_table([f"tasks of 10 ms, {CONCURRENCY} at a time", "tasks/s"], rows)


def bars_of(turns: Rounds) -> Iterator[Bar]:
    mine = turns[OURS]
    yield at_least("drained through Django's Tasks API", 12_000, middle(mine, "drain"), ",.0f", "/s")
    yield at_least("drained by the engine alone", 25_000, middle(turns[ENGINE], "drain"), ",.0f", "/s")
    for name, least in DRAIN_BARS.items():
        yield at_least(f"drained, times {name}", least, times(turns, OURS, name, "drain"), ".1f")
    for name, least in ENQUEUE_BARS.items():
        yield at_least(f"enqueued one by one, times {name}", least, times(turns, OURS, name, "enqueue"))
    part = times(turns, OURS, "huey", "enqueue redis")
    yield at_most("Redis CPU per task, enqueued one by one, times huey's", 1.2, part)
    cpu, pushed = middle(mine, "drain redis"), middle(mine, "enqueue redis")
    yield at_most("Redis CPU per task, drained", 25, cpu, ".1f", " µs")
    yield at_most("Redis CPU per task, enqueued one by one and drained", 25, cpu + pushed, ".1f", " µs")
    yield at_most("round trips per task under load", 0.1, middle(mine, "reads"))


def bars_of_ours(idle: Turn, naps: list[tuple[float, float]]) -> Iterator[Bar]:
    later = (percentile(idle["starts"], 99) - percentile(idle["pings"], 99)) * 1e3
    yield at_most("enqueue() to start, p99 above PING's", 2, later, ".2f", " ms")
    yield at_most("CPU of an idle worker", 0.01, idle["idle"], ".1%")
    part = median(worker / bare for bare, worker in naps)
    yield at_least(f"10 ms tasks beside a bare pool, both {CONCURRENCY} threads", 0.95, part, ".0%")
