"""The figures as tables of Markdown: the median of the rounds, and each ratio's median over the rounds."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Any

from redis import Redis

from benchmarks.peers.base import Peer
from benchmarks.turns import Turn

if TYPE_CHECKING:
    from benchmarks.alone import Latency

ENGINE = "components, engine alone"
BUSY = 0.5  # processors in use by others, from which on figures are doubtful

Turns = Mapping[str, Sequence[Turn]]


def conditions(redis: Redis, rounds: int) -> str:
    """When, on what, with which versions."""
    info: Any = redis.info("server")
    libraries = ", ".join(f"{name} {version(name)}" for name in ("Django", "redis", "hiredis"))
    return (
        f"{datetime.now(UTC):%Y-%m-%d}; {os.cpu_count()} processors, {platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}, Redis {info['redis_version']}, {libraries}; "
        f"medians of {rounds} rounds. Load when this began: {load():.2f}."
    )


def load() -> float:
    """How many processors others have used in the last minute."""
    return os.getloadavg()[0]


def promises(peers: Sequence[Peer]) -> Iterator[str]:
    """What each system does for its figures."""
    yield from _table(
        ["system", "worker", "acks", "retries", "results", "priorities"],
        ([f"{peer.name} {peer.version}", peer.how, *vars(peer.guarantees).values()] for peer in peers),
    )


def rates(turns: Turns, counts: Mapping[str, int], ours: str) -> Iterator[str]:
    """The systems beside each other."""
    yield from _table(
        ["system", "tasks", "enqueue/s", "drain/s", "slowest to fastest", "ours/theirs: enqueue", "drain"],
        (
            [
                name,
                f"{counts[name]:,}",
                f"{_median(rounds, lambda turn: turn.enqueue_rate):,.0f}",
                f"{_median(rounds, lambda turn: turn.drain_rate):,.0f}",
                _span([turn.drain_rate for turn in rounds]),
                _ratio(turns[ours], rounds, lambda turn: turn.enqueue_rate),
                _ratio(turns[ours], rounds, lambda turn: turn.drain_rate),
            ]
            for name, rounds in turns.items()
        ),
    )


def costs(turns: Turns) -> Iterator[str]:
    """What the server does for each task."""
    yield from _table(
        ["system", "Redis CPU: enqueue µs", "drain µs", "commands", "reads while draining"],
        (
            [
                name,
                f"{_median(rounds, lambda turn: turn.enqueue_cpu):.1f}",
                f"{_median(rounds, lambda turn: turn.drain_cpu):.1f}",
                f"{_median(rounds, lambda turn: turn.commands):.1f}",
                f"{_median(rounds, lambda turn: turn.reads):.2f}",
            ]
            for name, rounds in turns.items()
        ),
    )


def latencies(latency: Latency) -> Iterator[str]:
    """Enqueue to start, beside PING."""
    yield from _table(
        ["idle worker", "p50 ms", "p99 ms"],
        (
            [name, f"{_percentile(values, 50) * 1e3:.2f}", f"{_percentile(values, 99) * 1e3:.2f}"]
            for name, values in (("enqueue() to start", latency.starts), ("PING", latency.pings))
        ),
    )
    if latency.idle_cpu is not None:
        yield f"\nCPU of the idle worker: at most {latency.idle_cpu:.1%} of one processor."


def naps(measured: Sequence[tuple[float, float]]) -> str:
    """I/O against the pool."""
    bare, worker = (median(column) for column in zip(*measured, strict=True))
    part = median(worker / bare for bare, worker in measured)
    return (
        f"Tasks of 10 ms at concurrency 32: {worker:,.0f}/s; a bare pool of 32 threads {bare:,.0f}/s; "
        f"that is {part:.0%} of it."
    )


def _median(turns: Sequence[Turn], of: Callable[[Turn], float]) -> float:
    return median(map(of, turns))


def _ratio(ours: Sequence[Turn], theirs: Sequence[Turn], of: Callable[[Turn], float]) -> str:
    ratio = median(of(our) / of(their) for our, their in zip(ours, theirs, strict=True))
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def _span(values: Sequence[float]) -> str:
    return f"{min(values):,.0f} to {max(values):,.0f}"


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def _table(head: Sequence[str], rows: Iterable[list[str]]) -> Iterator[str]:
    table = [list(head), *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for number, row in enumerate(table):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"
