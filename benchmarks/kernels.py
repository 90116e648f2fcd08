"""
Lines per second of each kernel, in one process.

Blocks of made-up lines are in memory before the clock starts. It measures processor time, so other programs disturb
it little. The kernels take turns, after each has counted once, and all must arrive at the same counts.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from statistics import median
from time import process_time

from benchmarks import log_lines
from benchmarks.harness import Turn, alternate
from benchmarks.report import print_table, values
from components.services.logs.lines import KERNELS, Counting, Counts, Format, PlaceTable, Ranges, find_format
from components.services.logs.lines.extras import has_numba

#: Slow kernels count fewer lines.
SHARES = {"numba": 1, "naive": 20}
STAGES = ("reading", "places", "counting")


def run(options: Namespace) -> None:
    tables = dict(make_tables())
    rows = []
    for name in ("book", "combined", "book, a third IPv6"):
        form, ipv6 = name.split(",")[0], 1 / 3 if "," in name else 0
        blocks = list(log_lines.blocks(options.lines, form, ipv6=ipv6))
        for level, table in tables.items():
            rows += [[name, level, *row] for row in compare(blocks, find_format(form), table, options.rounds)]
    print_table(["format", "lines by", "kernel", "lines/s", *STAGES], rows)


def make_tables() -> Iterator[tuple[str, PlaceTable]]:
    """Yield the tables of addresses by level, and print a description of each."""
    world = log_lines.world()
    for level, places in (("country", world.countries), ("city", world.cities)):
        begun = process_time()
        ipv6 = Ranges(world.ipv6_starts, world.ipv6_ends, places)
        table = PlaceTable(Ranges(world.starts, world.ends, places), ipv6)
        took = process_time() - begun
        slots, number, _buckets, bounds, bound_places = table.index
        size, split = slots.nbytes + bounds.nbytes + bound_places.nbytes, (slots == number).mean()
        what = f"By {level}: {len(places):,} ranges, {table.size - 1:,} places; made in {took:.2f} s"
        print(f"{what}, {size / 1e6:.0f} MB, {split:.1%} of all /24 split.")
        yield level, table


def compare(blocks: list[bytes], form: Format, table: PlaceTable, rounds: int) -> Iterator[list[str]]:
    names = [name for name in KERNELS if name != "numba" or has_numba()]
    counted = {name: Counting(table, form, kernel=name) for name in names}
    check([count(counted[name], blocks[:2]) for name in names])
    turn = lambda name: stages(counted[name], blocks[: max(1, len(blocks) // SHARES[name])])  # noqa: E731
    for name, turns in alternate("kernels", names, rounds, turn).items():
        seconds = [median(values(turns, stage)) for stage in STAGES]
        yield [name, f"{1 / sum(seconds):,.0f}", *(f"{second * 1e9:,.0f} ns" for second in seconds)]


def count(counting: Counting, blocks: list[bytes]) -> Counts:
    for block in blocks:
        counting.add(block)
    return counting.take()


def check(counts: list[Counts]) -> None:
    assert all(each == counts[0] for each in counts), "The kernels do not arrive at the same counts."
    assert not counts[0].rejected, counts[0].samples


def stages(counting: Counting, blocks: list[bytes]) -> Turn:
    """Return the seconds per line of each part of the work of Counting.add()."""
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
    return {stage: total / done for stage, total in zip(STAGES, spent, strict=True)}
