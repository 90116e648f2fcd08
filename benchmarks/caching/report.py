"""The tables of rows.py: the median of the rounds, and each ratio's median over the rounds; then the bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.caching import BOOK, ORM, OURS
from benchmarks.tables import Bar, percentile, print_bars, print_table

if TYPE_CHECKING:
    from benchmarks.caching.counts import Counts
    from benchmarks.caching.daemons import Idling, Refresh
    from benchmarks.caching.lateness import Lateness
    from benchmarks.caching.systems import Guarantees

#: Of a round: microseconds by what was read.
Read: TypeAlias = Mapping[str, float]

#: What is read, and how many times the ORM's time is asked for.
_BARS = {"one": 3, "one, a value": 3, "many": 10, "many, a value": 10}
_WORDS = {"one": "one row", "many": "100 rows"}


@dataclass
class Measured:
    """What was; the rest was not asked for."""

    #: By the number of daemons.
    refreshes: dict[int, list[Refresh]] = field(default_factory=dict)
    latenesses: dict[int, Lateness] = field(default_factory=dict)
    #: Rows a second of the book's daemon.
    books: list[float] = field(default_factory=list)
    guarantees: dict[str, Guarantees] = field(default_factory=dict)
    reads: dict[str, list[Read]] = field(default_factory=dict)
    counts: Counts | None = None


def print_refreshes(measured: Measured, count: int) -> None:
    def row(name: str, rates: Sequence[float], *cpu: str) -> list[str]:
        times = median(our / their for our, their in zip(rates, measured.books, strict=True))
        return [
            name,
            f"{median(rates):,.0f}",
            f"{min(rates):,.0f} to {max(rates):,.0f}",
            f"{times:.1f}",
            *cpu,
        ]

    rows = []
    for how_many, turns in measured.refreshes.items():
        used = [turn.daemon_cpu for turn in turns if turn.daemon_cpu is not None]
        cpu = [f"{median(used):.1f}" if used else "-", f"{median(turn.server_cpu for turn in turns):.1f}"]
        rows.append(row(_daemons(how_many), [turn.rate for turn in turns], *cpu))
    rows.append(row(BOOK, measured.books, "-", "-"))
    head = [f"{count:,} rows that are due", "rows/s", "slowest to fastest", "times the book's"]
    print_table([*head, "CPU of daemons, µs a row", "of Redis"], rows)


def print_latenesses(latenesses: Mapping[int, Lateness], count: int, periods: int) -> None:
    print_table(
        [
            f"{count:,} rows every 5 s, {periods} times",
            "looked at",
            "due to stored, ms: p50",
            "p99",
            "most",
            "due to claimed: p50",
            "p99",
            "age when replaced, s: p99",
            "most",
            "CPU of daemons",
            "of Redis",
        ],
        (
            [
                _daemons(how_many),
                f"{len(each.stored):,}",
                *(_ms(percentile(each.stored, percent)) for percent in (50, 99, 100)),
                *(_ms(percentile(each.began, percent)) for percent in (50, 99)),
                *(f"{percentile(each.ages, percent):.2f}" for percent in (99, 100)),
                _part(each.daemon_cpu),
                _part(each.server_cpu),
            ]
            for how_many, each in latenesses.items()
        ),
    )


def print_reads(measured: Measured) -> None:
    print_table(
        ["system", "how old at most", "goes backwards", "values", "100 rows"],
        ([name, *vars(each).values()] for name, each in measured.guarantees.items()),
    )
    for size, word in _WORDS.items():
        whats = [size, f"{size}, a value", f"{size}, all values"]
        print_table(
            [
                f"{word}, µs",
                "read",
                "and a value of each",
                "and all 8",
                "ORM's time, times",
                "and a value",
                "and all 8",
            ],
            (
                [
                    name,
                    *(f"{median(each[what] for each in rounds):,.0f}" for what in whats),
                    *(f"{_times(measured.reads, name, what):.1f}" for what in whats),
                ]
                for name, rounds in measured.reads.items()
            ),
        )


def print_counts(counts: Counts) -> None:
    print_table(
        ["", "round trips to Redis", "queries"],
        [
            ["components: a batch of two models", f"{counts.trips:g}", f"{counts.queries} for each model"],
            ["book: a row", f"{counts.book_trips}", f"{counts.book_queries}"],
        ],
    )


def print_idling(idling: Idling, count: int) -> None:
    print_table(
        [f"a daemon and {count:,} rows, none due", "CPU of the daemon", "of Redis", "commands/s"],
        [["components", _part(idling.daemon_cpu), _part(idling.server_cpu), f"{idling.commands:,.0f}"]],
    )


def print_bars_of(measured: Measured, count: int) -> None:
    print_bars(_bars(measured, count))


def _bars(measured: Measured, count: int) -> Iterator[Bar]:
    if turns := measured.refreshes.get(1):
        rate = median(turn.rate for turn in turns)
        yield Bar("rows loaded anew by one daemon", "at least 20,000/s", f"{rate:,.0f}/s", rate >= 20_000)
    if measured.reads:
        for what, least in _BARS.items():
            times = _times(measured.reads, OURS, what)
            size, _, more = what.partition(", ")
            name = f"reading {_WORDS[size]}{' and a value of each' if more else ''}, times the ORM"
            yield Bar(name, f"at least {least}", f"{times:.1f}", times >= least)
    if found := measured.latenesses.get(1):
        late = percentile(found.stored, 99)
        name = f"{count:,} rows every 5 s, one daemon: p99 of lateness"
        yield Bar(name, "under 250 ms", f"{_ms(late)} ms", late < 0.25)
    if counts := measured.counts:
        yield Bar("round trips to Redis for a batch", "at most 3", f"{counts.trips:g}", counts.trips <= 3)
        name = "queries for each model and batch"
        yield Bar(name, "at most 1", f"{counts.queries}", counts.queries <= 1)


def _times(reads: Mapping[str, Sequence[Read]], name: str, what: str) -> float:
    """How many times as long the ORM takes."""
    return median(orm[what] / one[what] for orm, one in zip(reads[ORM], reads[name], strict=True))


def _daemons(how_many: int) -> str:
    return "components, one daemon" if how_many == 1 else f"components, {how_many} daemons"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f}"


def _part(cpu: float | None) -> str:
    return "-" if cpu is None else f"{cpu:.1%}"
