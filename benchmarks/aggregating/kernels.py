"""
Lines per second of each kernel, in one process: `python benchmarks/aggregating/kernels.py`.

Blocks of made-up lines are in memory before the clock starts, and it counts the time of the processor, so that
other programs disturb little. The kernels take turns, each has counted once before, and all have to come to the
same counts.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from benchmarks.aggregating import lines
from components.services.logs.lines import KERNELS, Counting, Counts, Format, PlaceTable, Ranges, find_format
from components.services.logs.lines.extras import has_numba

#: The slower ones count fewer lines.
SHARES = {"numba": 1, "numpy": 4, "naive": 40}


def main() -> None:
    options = read_options()
    tables = dict(make_tables())
    print("| format | lines by | kernel | lines/s | reading | places | counting |")
    print("|---|---|---|---|---|---|---|")
    for name in ("book", "combined", "book, a third IPv6"):
        form = find_format(name.split(",")[0])
        blocks = list(lines.blocks(options.lines, name.split(",")[0], ipv6=1 / 3 if "," in name else 0))
        for level, table in tables.items():
            compare(f"{name} | {level}", blocks, form, table, options.rounds)


def make_tables() -> Iterator[tuple[str, PlaceTable]]:
    world = lines.world()
    for level, places in (("country", world.countries), ("city", world.cities)):
        begun = process_time()
        table = PlaceTable(
            Ranges(world.starts, world.ends, places), Ranges(world.ipv6_starts, world.ipv6_ends, places)
        )
        took, size = (
            process_time() - begun,
            table.slots.nbytes + table.bounds.nbytes + table.bound_places.nbytes,
        )
        split = (table.slots == table.split).mean()
        print(
            f"By {level}: {len(places):,} ranges, {table.size - 1:,} places; made in {took:.2f} s,", end=" "
        )
        print(f"{size / 1e6:.0f} MB, {split:.1%} of all /24 split.")
        yield level, table


def compare(what: str, blocks: list[bytes], form: Format, table: PlaceTable, rounds: int) -> None:
    names = [name for name in KERNELS if name != "numba" or has_numba()]
    counted = {name: Counting(table, form, kernel=name) for name in names}
    check([count(counted[name], blocks[:2]) for name in names])
    times: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            part = blocks[: max(1, len(blocks) // SHARES[name])]
            times[name].append(stages(counted[name], part))
    for name in names:
        seconds = [median(column) for column in zip(*times[name], strict=True)]
        parts = " | ".join(f"{second * 1e9:,.0f} ns" for second in seconds)
        print(f"| {what} | {name} | {1 / sum(seconds):,.0f} | {parts} |", flush=True)


def count(counting: Counting, blocks: list[bytes]) -> Counts:
    for block in blocks:
        counting.add(block)
    return counting.take()


def check(counts: list[Counts]) -> None:
    assert all(each == counts[0] for each in counts), "The kernels do not come to the same counts."
    assert not counts[0].rejected, counts[0].samples


def stages(counting: Counting, blocks: list[bytes]) -> tuple[float, ...]:
    """Seconds per line of each part of the work, which is that of Counting.add()."""
    kernel, spent, done = counting.reader.kernel, [0.0, 0.0, 0.0], 0
    for block in blocks:
        marks = [process_time()]
        columns = kernel.columns(block, counting.reader.form)
        marks.append(process_time())
        places = kernel.places(columns, counting.table)
        marks.append(process_time())
        kernel.count(counting._cells, columns.days, places)
        marks.append(process_time())
        spent = [total + end - begin for total, begin, end in zip(spent, marks, marks[1:], strict=False)]
        done += len(columns)
    return tuple(total / done for total in spent)


def read_options() -> Namespace:
    parser = ArgumentParser(description="Kernels for logs, against each other.")
    parser.add_argument("--lines", type=int, default=2_000_000, help="Of the fastest (default: 2000000).")
    parser.add_argument("--rounds", type=int, default=5, help="Turns of each kernel (default: 5).")
    return parser.parse_args()


if __name__ == "__main__":
    main()
