"""The tables of queues.py: the median of the rounds, and each ratio's median over the rounds; then the bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.peers.base import Peer
from benchmarks.tables import Bar, percentile, print_bars, print_table
from benchmarks.turns import Turn

if TYPE_CHECKING:
    from benchmarks.alone import Latency

ENGINE = "components, engine alone"
OURS = "components"

#: Times what each peer drains; peers that are not here have no bar.
RATIOS = {"huey": 4, "dramatiq": 6, "rq": 40, "celery": 20}

Turns = Mapping[str, Sequence[Turn]]
#: Tasks per second of a bare pool, and of the worker, for each round.
Naps = Sequence[tuple[float, float]]


def print_comparison(peers: Sequence[Peer], turns: Turns, counts: Mapping[str, int]) -> None:
    """The systems beside each other: what they promise, how fast they are, what they cost Redis."""
    print_table(
        ["system", "worker", "acks", "retries", "results", "priorities"],
        ([f"{peer.name} {peer.version}", peer.how, *vars(peer.guarantees).values()] for peer in peers),
    )
    print_table(
        [
            "system",
            "tasks",
            "enqueue/s",
            "drain/s",
            "slowest to fastest",
            "ours/theirs: enqueue",
            "drain",
            "boot, s",
        ],
        (
            [
                name,
                f"{counts[name]:,}",
                f"{_median(rounds, _enqueue_rate):,.0f}",
                f"{_median(rounds, _drain_rate):,.0f}",
                _span([turn.drain_rate for turn in rounds]),
                _short(_ratio(turns[OURS], rounds, _enqueue_rate)),
                _short(_ratio(turns[OURS], rounds, _drain_rate)),
                f"{_median(rounds, lambda turn: turn.boot):.1f}",
            ]
            for name, rounds in turns.items()
        ),
    )
    print_table(
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


def print_closer_look(latency: Latency, naps: Naps) -> None:
    """What only ours is asked for."""
    print_table(
        ["idle worker", "p50 ms", "p99 ms"],
        (
            [name, f"{percentile(values, 50) * 1e3:.2f}", f"{percentile(values, 99) * 1e3:.2f}"]
            for name, values in (("enqueue() to start", latency.starts), ("PING", latency.pings))
        ),
    )
    bare, worker = (median(column) for column in zip(*naps, strict=True))
    print_table(
        ["tasks of 10 ms, 32 at a time", "tasks/s"],
        [["a bare pool of 32 threads", f"{bare:,.0f}"], ["runworker --concurrency 32", f"{worker:,.0f}"]],
    )


def print_promises(turns: Turns, latency: Latency, naps: Naps) -> None:
    """The bars."""
    print_bars([*_of_turns(turns), *_of_a_closer_look(latency, naps)])


def _of_turns(turns: Turns) -> Iterator[Bar]:
    ours, engine = turns[OURS], turns[ENGINE]
    rate, bare = _median(ours, _drain_rate), _median(engine, _drain_rate)
    yield Bar("drained through Django's Tasks API", "at least 12,000/s", f"{rate:,.0f}/s", rate >= 12_000)
    yield Bar("drained by the engine alone", "at least 25,000/s", f"{bare:,.0f}/s", bare >= 25_000)
    for name, least in RATIOS.items():
        ratio = _ratio(ours, turns[name], _drain_rate) if name in turns else None
        measured = _short(ratio) if ratio is not None else None
        yield Bar(f"times {name}", f"at least {least}", measured, (ratio or 0) >= least)
    cpu, pushed = _median(ours, lambda turn: turn.drain_cpu), _median(ours, lambda turn: turn.enqueue_cpu)
    yield Bar("Redis CPU per task, drained", "at most 25 µs", f"{cpu:.1f} µs", cpu <= 25)
    whole = f"{cpu + pushed:.1f} µs"
    yield Bar(
        "Redis CPU per task, enqueued one by one and drained", "at most 25 µs", whole, cpu + pushed <= 25
    )
    reads = _median(ours, lambda turn: turn.reads)
    yield Bar("round trips per task under load", "at most 0.1", f"{reads:.2f}", reads <= 0.1)


def _of_a_closer_look(latency: Latency, naps: Naps) -> Iterator[Bar]:
    later = (percentile(latency.starts, 99) - percentile(latency.pings, 99)) * 1e3
    yield Bar("enqueue() to start, p99 above PING's", "at most 2 ms", f"{later:.2f} ms", later <= 2)
    idle = latency.idle_cpu
    measured = f"{idle:.1%}" if idle is not None else None
    yield Bar("CPU of an idle worker", "under 1 %", measured, (idle or 0) < 0.01)
    part = median(worker / bare for bare, worker in naps)
    yield Bar("10 ms tasks beside a bare pool, both 32 threads", "at least 95 %", f"{part:.0%}", part >= 0.95)


def _enqueue_rate(turn: Turn) -> float:
    return turn.enqueue_rate


def _drain_rate(turn: Turn) -> float:
    return turn.drain_rate


def _median(turns: Sequence[Turn], of: Callable[[Turn], float]) -> float:
    return median(map(of, turns))


def _ratio(ours: Sequence[Turn], theirs: Sequence[Turn], of: Callable[[Turn], float]) -> float:
    return median(of(our) / of(their) for our, their in zip(ours, theirs, strict=True))


def _short(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def _span(values: Sequence[float]) -> str:
    return f"{min(values):,.0f} to {max(values):,.0f}"
