"""
Counters, ours against the book's, prometheus_client and StatsD: `python benchmarks/counters.py`; docs/benchmarks.md
says what it measures.

One private Redis server for all, and one process that counts, in turns. Peers that are not installed are left out.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import counting
from benchmarks.bench import Bench, say
from benchmarks.server import standing_bench
from benchmarks.tables import print_conditions

SLICES = 5  # turns of a round: the shorter they are, the more alike are the moments that a ratio compares
NAMES = (1_000, 10_000, 100_000)


def main() -> None:
    options = read_options()
    with standing_bench() as bench:
        from benchmarks.counting import report, turns
        from components.services.counters import forget

        print_conditions(bench.redis, f"medians of {options.rounds} rounds")
        systems = counting.systems()
        counts = {name: options.events * system.share for name, system in systems.items()}
        rates: dict[str, list[turns.Rate]] = {name: [] for name in systems}
        for number in range(options.rounds * SLICES):
            for name, system in systems.items():
                say(f"turn {number + 1} of {options.rounds * SLICES}: {name}")
                rates[name].append(turns.rate(bench, system, counts[name] // SLICES))
        report.print_rates(systems, rates, counts)
        reads = [turns.reading(bench, fill) for _ in range(options.rounds)]
        report.print_reads(reads, turns.bytes_per_sample(bench))
        curve = [turns.standing(bench, names, largest_pass=options.largest_pass) for names in NAMES]
        report.print_standing(curve)
        report.print_bars_of(rates, reads, curve, turns.middleware())
        forget()


def read_options() -> Namespace:
    parser = ArgumentParser(description="Counters, ours against others.")
    parser.add_argument("--rounds", type=int, default=5, help="Turns of each system (default: 5).")
    parser.add_argument("--events", type=int, default=5_000, help="Of a turn of the slowest (default: 5000).")
    what = "Names up to which the book's cleaner is waited for (default: 10000)."
    parser.add_argument("--pass", type=int, default=10_000, dest="largest_pass", help=what)
    return parser.parse_args()


def fill(bench: Bench) -> None:
    """Each second, minute and hour that is kept of one counter has counted, as if that had been done then."""
    from components.kit.buckets import bucket
    from components.services.counters.keys import CounterKeys
    from components.services.counters.precisions import WINDOW, plan

    now = int(bench.redis.time()[0])  # type: ignore[index]
    pipe = bench.redis.pipeline(transaction=False)
    for stored, kept in plan().kept.items():
        for slot in range((now - kept) // stored, now // stored + (600 if stored == 1 else 1)):
            key = f"{CounterKeys(bucket('hits')).samples}:hits/{stored}:{slot // WINDOW}"
            pipe.hincrby(key, str(slot % WINDOW), slot % 97 * stored)
    pipe.execute()


if __name__ == "__main__":
    main()
