"""
The market of the book, by three strategies: `python benchmarks/market.py`; docs/benchmarks.md says what it measures.

Sellers list and buyers buy as fast as they can. The strategies take turns for each number of buyers.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench import Bench, say
from benchmarks.crew import Crew
from benchmarks.marketplace.figure import Panel, draw
from benchmarks.marketplace.goods import Day, open_market
from benchmarks.marketplace.strategies import STRATEGIES
from benchmarks.server import standing_bench
from benchmarks.tables import print_conditions, print_table

BUYERS = (1, 2, 4, 8, 16)

#: Strategy -> number of buyers -> all rounds.
Days: TypeAlias = Mapping[str, Mapping[int, Sequence[Day]]]


def main() -> None:
    options = read_options()
    with (
        standing_bench(tcp=options.tcp) as bench,
        Crew(options.sellers + max(BUYERS)) as crew,
    ):
        conditions = f"{options.sellers} sellers, {options.rounds} rounds of {options.seconds:g} s, medians"
        print_conditions(bench.redis, conditions)
        days = trade(bench, crew, options)
    report(days)
    if options.figure:
        options.figure.write_text(draw(panels(days)))


def read_options() -> Namespace:
    parser = ArgumentParser(description="The market of the book, by three strategies.")
    parser.add_argument("--rounds", type=int, default=3, help="Turns of each strategy (default: 3).")
    parser.add_argument("--seconds", type=float, default=2.0, help="Of a turn (default: 2).")
    parser.add_argument("--sellers", type=int, default=5, help="Who list items meanwhile (default: 5).")
    parser.add_argument("--figure", type=Path, help="Where to write the curves, as an SVG.")
    parser.add_argument(
        "--tcp", action="store_true", help="All over TCP on this machine, not the unix socket."
    )
    return parser.parse_args()


def trade(bench: Bench, crew: Crew, options: Namespace) -> Days:
    """Every strategy with every number of buyers, in turns. Raises Inconsistent."""
    days: dict[str, dict[int, list[Day]]] = {name: {buyers: [] for buyers in BUYERS} for name in STRATEGIES}
    for number in range(1, options.rounds + 1):
        for buyers in BUYERS:
            for name in STRATEGIES:
                say(f"round {number} of {options.rounds}: {buyers} buyers, {name}")
                day = open_market(bench, crew, name, options.sellers, buyers, options.seconds)
                days[name][buyers].append(day)
    say("")
    return days


def report(days: Days) -> None:
    """A row for each strategy and each number of buyers."""
    print_table(
        ["strategy", "buyers", "bought/s", "slowest to fastest", "listed/s", "retries", "ms per purchase"],
        (
            [
                name if buyers == BUYERS[0] else "",
                str(buyers),
                _short(_median(rounds, lambda day: day.bought)),
                f"{_short(min(day.bought for day in rounds))} to {_short(max(day.bought for day in rounds))}",
                _short(_median(rounds, lambda day: day.listed)),
                _short(_median(rounds, lambda day: day.retries)),
                _short(_median(rounds, lambda day: day.latency) * 1e3),
            ]
            for name, by_buyers in days.items()
            for buyers, rounds in by_buyers.items()
        ),
    )


def panels(days: Days) -> list[Panel]:
    """What the figure shows of the rounds."""

    def curves(value: Callable[[Day], float]) -> dict[str, list[tuple[int, float]]]:
        return {
            name: [(buyers, _median(rounds, value)) for buyers, rounds in by_buyers.items()]
            for name, by_buyers in days.items()
        }

    return [
        Panel("Purchases per second", curves(lambda day: day.bought)),
        Panel("Milliseconds per purchase", curves(lambda day: day.latency * 1e3)),
    ]


def _median(days: Sequence[Day], value: Callable[[Day], float]) -> float:
    return median(map(value, days))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


if __name__ == "__main__":
    main()
