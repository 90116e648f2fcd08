"""The tables of counters.py: the median of the rounds, and each ratio's median over the rounds; then the bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.counting import BOOK, BUFFERED, OURS
from benchmarks.counting.base import System
from benchmarks.counting.turns import Rate, Standing
from benchmarks.tables import Bar, print_bars, print_table

Rates = Mapping[str, Sequence[Rate]]
Reads = Sequence[Mapping[int, float]]


def print_rates(systems: Mapping[str, System], rates: Rates, counts: Mapping[str, int]) -> None:
    print_table(
        ["system", "kept", "lost", "a reply that is lost", "cleaned"],
        (
            [f"{name} {each.version}".strip(), *vars(each.guarantees).values()]
            for name, each in systems.items()
        ),
    )
    print_table(
        [
            "system",
            "events",
            "events/s",
            "slowest to fastest",
            "ours/theirs: at once",
            "in memory",
            "CPU of Redis, µs",
            "lost",
        ],
        ([name, f"{counts[name]:,}", *_figures(rates, rounds)] for name, rounds in rates.items()),
    )


def _figures(rates: Rates, rounds: Sequence[Rate]) -> list[str]:
    events = [each.events for each in rounds]
    return [
        f"{median(events):,.0f}",
        f"{min(events):,.0f} to {max(events):,.0f}",
        f"{ratio(rates[OURS], rounds):.2f}",
        f"{ratio(rates[BUFFERED], rounds):.1f}",
        f"{median(each.cpu for each in rounds):.2f}",
        _percent([each.lost for each in rounds if each.lost is not None]),
    ]


def _percent(lost: Sequence[float]) -> str:
    return f"{median(lost):.1%}" if lost else "-"


def print_reads(reads: Reads, size: float) -> None:
    print_table(
        ["slices of", "120 samples, ms beyond a PING"],
        ([f"{precision:,} s", f"{median(each[precision] for each in reads):.2f}"] for precision in reads[0]),
    )
    print(f"\nA sample takes {size:.1f} bytes.")


def print_standing(curve: Sequence[Standing]) -> None:
    print_table(
        [
            "names",
            "commands of a minute in which nobody counts",
            "one pass of the book's cleaner",
            "bytes a name",
            "sent in ms",
        ],
        (
            [
                f"{each.names:,}",
                f"{each.ours:,.0f}",
                f"{each.passes[0]:,} commands, {each.passes[1]:.1f} s" if each.passes else "not waited for",
                f"{each.size:,.0f}",
                f"{each.flush:,.0f}",
            ]
            for each in curve
        ),
    )


def print_bars_of(rates: Rates, reads: Reads, curve: Sequence[Standing], middleware: float) -> None:
    times = ratio(rates[OURS], rates[BOOK])
    buffered = median(each.events for each in rates[BUFFERED])
    slowest = max(median(each[precision] for each in reads) for precision in reads[0])
    lost = max(each.lost or 0 for name in (OURS, BUFFERED) for each in rates[name])
    commands = max(each.ours for each in curve)
    print_bars(
        [
            Bar("updates at once, times the book's", "at least 3", f"{times:.1f}", times >= 3),
            Bar("updates in memory", "at least 1,000,000/s", f"{buffered:,.0f}/s", buffered >= 1e6),
            Bar("of these lost", "none", f"{lost:.1%}", lost == 0),
            Bar("reading 120 samples beyond a PING", "under 1 ms", f"{slowest:.2f} ms", slowest < 1),
            Bar("commands while nobody counts", "none", f"{commands:.0f}", commands == 0),
            Bar("middleware for each request", "at most 20 µs", f"{middleware:.1f} µs", middleware <= 20),
        ]
    )


def ratio(ours: Sequence[Rate], theirs: Sequence[Rate]) -> float:
    return median(one.events / other.events for one, other in zip(ours, theirs, strict=True))
