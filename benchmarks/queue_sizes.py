"""
What things cost as a queue grows: `python benchmarks/queue_sizes.py`; docs/benchmarks.md says what it measures.

One queue is filled to a thousand, ten thousand, … ready tasks. At each size all is measured again: what producers
and workers do, what the control room shows, and the memory of Redis. The queue keeps its size meanwhile.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from django.core.management import call_command

from benchmarks.bench import Bench, say
from benchmarks.server import standing_bench
from benchmarks.tables import Bar, print_bars, print_conditions, print_table

SIZES = (1_000, 10_000, 100_000, 1_000_000)
BEFORE = (
    500  # tasks that are there before memory is measured: what a script and a connection take is no task's
)
FILLED_AT_ONCE = 10_000  # tasks
SLOWEST_PAGE = 100  # milliseconds
MOST_BYTES = 450  # of Redis for each waiting task, beside its payload
STEADY = 1.5  # times the cost at the smallest size: the cache of a processor holds that, and not the largest

BYTES = "Redis, bytes per task"
#: The bars for the largest size: what must cost what it costs at the smallest.
STEADY_COSTS = ("enqueue one", "claim and ack 100", "stats", "all_stats", "page: queues", "page: tasks")


def main() -> None:
    parser = ArgumentParser(description="What things cost as a queue grows.")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="Only the sizes up to it.")
    largest = parser.parse_args().largest
    with standing_bench(settings="benchmarks.site") as bench:
        call_command("migrate", verbosity=0)
        print_conditions(bench.redis, "medians")
        measured = dict(grow(bench, [size for size in SIZES if size <= largest]))
    report(measured)


def grow(bench: Bench, sizes: list[int]) -> Iterator[tuple[int, Mapping[str, float]]]:
    """Each size, and what things cost there: milliseconds by what was done, and bytes."""
    from benchmarks.growth import costs, fill

    fill(BEFORE)
    count, grown = BEFORE, 0
    for size in sizes:
        before = bench.memory()
        while count < size:
            say(f"filling: {count:,} of {size:,}")
            some = min(FILLED_AT_ONCE, size - count)
            fill(some)
            count += some
        grown += bench.memory() - before
        say(f"measuring at {size:,}")
        yield size, {**costs(size), BYTES: grown / (size - BEFORE)}
    say("")


def report(measured: Mapping[int, Mapping[str, float]]) -> None:
    """The curve, and the bars."""
    from benchmarks.growth import PAYLOAD

    smallest, largest = measured[min(measured)], measured[max(measured)]
    print_table(
        ["ready tasks", *(f"{size:,}" for size in measured), "last/first"],
        (
            [
                name if name == BYTES else f"{name}, ms",
                *(_shown(name, costs[name]) for costs in measured.values()),
                f"{largest[name] / smallest[name]:.2f}",
            ]
            for name in largest
        ),
    )
    print(f"\nThe payload is {PAYLOAD} bytes of those per task.")
    print_bars(_bars(measured))


def _bars(measured: Mapping[int, Mapping[str, float]]) -> Iterator[Bar]:
    smallest, largest = min(measured), max(measured)
    for name in STEADY_COSTS:
        ratio = measured[largest][name] / measured[smallest][name]
        what = f"{name}: {largest:,} ready beside {smallest:,}"
        yield Bar(what, f"at most {STEADY} times", f"{ratio:.2f} times", ratio <= STEADY)
    pages = {name: cost for name, cost in measured[largest].items() if name.startswith("page")}
    slowest = max(pages, key=pages.__getitem__)
    what, took = f"slowest page with {largest:,} ready", pages[slowest]
    yield Bar(what, f"under {SLOWEST_PAGE} ms", f"{took:.0f} ms ({slowest})", took < SLOWEST_PAGE)
    from benchmarks.growth import PAYLOAD

    most = max(costs[BYTES] for costs in measured.values()) - PAYLOAD
    what = "Redis bytes per ready task, beside the payload"
    yield Bar(what, f"at most {MOST_BYTES}", f"{most:.0f}", most <= MOST_BYTES)


def _shown(name: str, cost: float) -> str:
    return f"{cost:.0f}" if name == BYTES else f"{cost:.2f}" if cost >= 1 else f"{cost:.3f}"


if __name__ == "__main__":
    main()
