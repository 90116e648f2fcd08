"""The tables of autocomplete.py: medians of the rounds, and each ratio's median over the rounds; then the bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TypeAlias

from benchmarks.completing.sizes import Load
from benchmarks.completing.turns import BOOK, OURS, Crowd, Latency
from benchmarks.tables import Bar, percentile, print_bars, print_table

#: Rounds by the length of the prefix.
ByLength: TypeAlias = Mapping[int, Sequence[Latency]]
#: System -> these.
Peers: TypeAlias = Mapping[str, ByLength]

PREFIX, WORDS, REBUILT = "by their beginnings", "by their words", "by their words, from PostgreSQL"
ORM, LIKE = "LIKE, by Django's ORM", "LIKE, bare"
VIEW, INDEXED, PLAIN = "components", "admin, with an index", "admin, as documented"

_LATE = 0.002  # seconds


@dataclass
class Measured:
    """What was; the rest was not asked for, or cannot be had here."""

    loads: dict[str, Load] = field(default_factory=dict)
    latencies: ByLength = field(default_factory=dict)
    queries: Peers = field(default_factory=dict)
    pages: Peers = field(default_factory=dict)
    crowds: Mapping[int, Mapping[str, Sequence[Crowd]]] = field(default_factory=dict)


def print_guarantees() -> None:
    """What each figure contains."""
    print_table(
        ["system", "finds a name by", "letters", "order", "looking writes", "round trips"],
        [
            ["components", "each word", "all, folded", "selected, then the alphabet", "no", "1"],
            ["book", "its beginning", "a to z", "alphabet", "yes", "4, and more when disturbed"],
            [LIKE, "its beginning", "all, as a column has them", "alphabet", "no", "1"],
            [
                INDEXED,
                "its beginning",
                "all, as a column has them",
                "alphabet",
                "no",
                "2, and 2 for who asks",
            ],
            [PLAIN, "any part of it", "all, accents differ", "alphabet", "no", "2, and 2 for who asks"],
        ],
    )


def print_loads(loads: Mapping[str, Load], count: int) -> None:
    print_table(
        [
            f"{count:,} names",
            "names/s",
            "client CPU µs",
            "Redis CPU µs",
            "bytes of Redis",
            "id and label",
            "beyond these",
        ],
        (
            [
                name,
                f"{load.rate:,.0f}",
                f"{load.client_cpu:.1f}",
                f"{load.server_cpu:.1f}",
                f"{load.bytes:.0f}",
                f"{load.text:.0f}",
                f"{load.bytes - load.text:.0f}",
            ]
            for name, load in loads.items()
        ),
    )


def print_latencies(what: str, latencies: Mapping[str, Sequence[Latency]]) -> None:
    """Each beside the PINGs between its calls."""
    print_table(
        [what, "p50 ms", "p99 ms", "PING p50", "PING p99", "p99 more than PING's"],
        (
            [
                name,
                _ms(median(_of(rounds, 50))),
                _ms(median(_of(rounds, 99))),
                _ms(median(percentile(turn.pings, 50) for turn in rounds)),
                _ms(median(percentile(turn.pings, 99) for turn in rounds)),
                _ms(_more(rounds)),
            ]
            for name, rounds in latencies.items()
        ),
    )


def print_peers(what: str, ours: str, peers: Peers) -> None:
    """The p50 of each at each length; and how many times ours theirs is."""
    others = [name for name in peers if name != ours]
    print_table(
        [what, *(f"{name}, p50 ms" for name in peers), *(f"{name}, times ours" for name in others)],
        (
            [
                f"of {length}",
                *(_ms(median(_of(by_length[length], 50))) for by_length in peers.values()),
                *(f"{_times(peers[ours][length], peers[name][length]):.1f}" for name in others),
            ]
            for length in peers[ours]
        ),
    )


def print_crowds(crowds: Mapping[int, Mapping[str, Sequence[Crowd]]], count: int) -> None:
    print_table(
        [
            f"directory of {count:,}",
            "processes",
            "answers/s",
            "slowest to fastest",
            "ours/theirs",
            "tries",
            "client CPU µs",
            "Redis CPU µs",
        ],
        (
            [
                name,
                str(processes),
                f"{median(turn.rate for turn in rounds):,.0f}",
                f"{min(turn.rate for turn in rounds):,.0f} to {max(turn.rate for turn in rounds):,.0f}",
                f"{_lead(by_system[OURS], rounds):.1f}",
                f"{median(turn.tries for turn in rounds):.1f}",
                f"{median(turn.client_cpu for turn in rounds):,.0f}",
                f"{median(turn.server_cpu for turn in rounds):,.0f}",
            ]
            for processes, by_system in crowds.items()
            for name, rounds in by_system.items()
        ),
    )


def print_bars_of(measured: Measured, *, count: int) -> None:
    print_bars(_bars(measured, count))


def _bars(measured: Measured, count: int) -> Iterator[Bar]:
    if measured.latencies:
        late = max(map(_more, measured.latencies.values()))
        yield Bar(
            f"prefixes of {count:,} names, the worst p99 above PING's",
            "at most 2 ms",
            f"{_ms(late)} ms",
            late <= _LATE,
        )
    for processes, by_system in measured.crowds.items():
        if processes == max(measured.crowds):
            lead = _lead(by_system[OURS], by_system[BOOK])
            yield Bar(
                f"{processes} processes at once, times the book's", "at least 30", f"{lead:.1f}", lead >= 30
            )
    for peers, ours in ((measured.queries, OURS), (measured.pages, VIEW)):
        for name in peers:
            if name != ours:
                times = [_times(peers[ours][length], peers[name][length]) for length in peers[ours]]
                shown = f"{median(times):.2f} ({min(times):.2f} to {max(times):.2f})"
                what = f"{name}, times ours, median of the lengths"
                yield Bar(what, "more than 1", shown, median(times) > 1)
    for name, load in measured.loads.items():
        yield Bar(f"loaded, {name}", "at least 50,000/s", f"{load.rate:,.0f}/s", load.rate >= 50_000)
    if load := measured.loads.get(PREFIX):
        beyond = load.bytes - load.text
        yield Bar("bytes of a name beyond its text", "at most 150", f"{beyond:.0f}", beyond <= 150)


def _of(rounds: Sequence[Latency], percent: int) -> list[float]:
    return [percentile(turn.times, percent) for turn in rounds]


def _more(rounds: Sequence[Latency]) -> float:
    """Seconds by which the p99 is above that of the PINGs between."""
    return median(percentile(turn.times, 99) - percentile(turn.pings, 99) for turn in rounds)


def _times(ours: Sequence[Latency], theirs: Sequence[Latency]) -> float:
    return median(
        percentile(their.times, 50) / percentile(our.times, 50)
        for our, their in zip(ours, theirs, strict=True)
    )


def _lead(ours: Sequence[Crowd], theirs: Sequence[Crowd]) -> float:
    return median(our.rate / their.rate for our, their in zip(ours, theirs, strict=True))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"
