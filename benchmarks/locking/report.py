"""The tables of locks.py: the median of the rounds, and each ratio's median over the rounds; then the bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeAlias, TypeVar

from benchmarks.locking import LOCKS, OUR_SEMAPHORE, OURS, OURS_FAIR
from benchmarks.locking import turns as of
from benchmarks.locking.base import System
from benchmarks.tables import Bar, percentile, print_bars, print_table

PROCESSES, PERMIT_PROCESSES = 8, 16  # that want the same lock, the same semaphore
FLOOR = "SET NX PX and a script"

Alone: TypeAlias = Mapping[str, Sequence[of.Alone]]
Crowds: TypeAlias = Mapping[str, Sequence[of.Crowd]]
HandOvers: TypeAlias = Mapping[str, Sequence[of.HandOver]]
_T = TypeVar("_T")


class Measured(NamedTuple):
    """All rounds of all systems."""

    pairs: Alone
    crowds: Crowds
    handed: HandOvers
    permit_pairs: Alone
    permit_crowds: Crowds


def print_guarantees(what: str, systems: Sequence[System]) -> None:
    """What each figure contains."""
    print_table(
        [what, "fence", "lease", "right after a lost reply", "wakes who waits", "in order"],
        (
            [f"{system.name} {system.version}".strip(), *vars(system.guarantees).values()]
            for system in systems
        ),
    )


def print_alone(what: str, alone: Alone) -> None:
    """One process, which nobody disturbs."""
    first = OURS if OURS in alone else OUR_SEMAPHORE
    print_table(
        [
            f"{what}, alone",
            "pairs/s",
            "slowest to fastest",
            "ours/theirs",
            "client CPU µs",
            "Redis CPU µs",
            "commands",
            "round trips",
        ],
        (
            [
                name,
                f"{_median(rounds, lambda turn: turn.rate):,.0f}",
                _span([turn.rate for turn in rounds]),
                f"{_ratio(alone[first], rounds, _rate):.2f}",
                f"{_median(rounds, lambda turn: turn.client_cpu):.0f}",
                f"{_median(rounds, lambda turn: turn.server_cpu):.0f}",
                f"{_median(rounds, lambda turn: turn.commands):.1f}",
                f"{_median(rounds, lambda turn: turn.reads):.1f}",
            ]
            for name, rounds in alone.items()
        ),
    )


def print_crowds(head: str, wrong: str, crowds: Crowds, first: str) -> None:
    """Several processes that want the same; waits are percentiles of a round, and their medians."""
    print_table(
        [head, "acquired/s", "slowest to fastest", "ours/theirs", "p50 ms", "p99 ms", "max ms", wrong],
        (
            [
                name,
                f"{_median(rounds, lambda turn: turn.rate):,.0f}",
                _span([turn.rate for turn in rounds]),
                f"{_ratio(crowds[first], rounds, _rate):.2f}",
                f"{_median(rounds, lambda turn: percentile(turn.waits, 50)) * 1e3:.1f}",
                f"{_median(rounds, _p99) * 1e3:.1f}",
                f"{_median(rounds, lambda turn: max(turn.waits)) * 1e3:.1f}",
                f"{sum(turn.wrong for turn in rounds):,}",
            ]
            for name, rounds in crowds.items()
        ),
    )


def print_hand_overs(handed: HandOvers) -> None:
    """From one process to another that waits."""
    print_table(
        ["release to acquired", "p50 ms", "p99 ms", "PING, p50 ms", "p50 in PINGs"],
        (
            [
                name,
                f"{_median(rounds, lambda turn: median(turn.times)) * 1e3:.2f}",
                f"{percentile([value for turn in rounds for value in turn.times], 99) * 1e3:.2f}",
                f"{_median(rounds, lambda turn: median(turn.pings)) * 1e3:.2f}",
                f"{_median(rounds, lambda turn: turn.round_trips):.1f}",
            ]
            for name, rounds in handed.items()
        ),
    )


def print_bars_of(measured: Measured) -> None:
    print_bars([*_of_locks(measured), *_of_permits(measured)])


def _of_locks(measured: Measured) -> Iterator[Bar]:
    pairs, crowds = measured.pairs, measured.crowds
    ratio = _ratio(pairs[OURS], pairs["redis-py"], _rate) if "redis-py" in pairs else None
    yield _at_least("uncontended pairs, times redis-py", 0.8, ratio)
    there = [name for name in LOCKS if name in crowds]
    best = max(there, key=lambda name: _median(crowds[name], _rate), default=None)
    ratio = _ratio(crowds[OURS], crowds[best], _rate) if best else None
    yield _at_least(f"contended, times the best peer ({best or 'none here'})", 0.9, ratio)
    ratio = _ratio(crowds[OURS_FAIR], crowds["redis-py"], _p99) if "redis-py" in crowds else None
    measured_part = f"{ratio:.2f}" if ratio is not None else None
    yield Bar("p99 wait when fair, part of redis-py's", "at most 0.2", measured_part, (ratio or 0) <= 0.2)
    for name in (OURS, OURS_FAIR):
        more = _median(measured.handed[name], lambda turn: turn.round_trips) - 1
        yield Bar(f"hand-over, {name}: PINGs more than one", "at most 2", f"{more:.1f}", more <= 2)
        lost = sum(turn.wrong for turn in crowds[name])
        yield Bar(f"lost updates, {name}", "none", f"{lost:,}", not lost)


def _of_permits(measured: Measured) -> Iterator[Bar]:
    over = sum(turn.wrong for turn in measured.permit_crowds[OUR_SEMAPHORE])
    yield Bar("more permits than the limit", "never", f"{over:,} times", not over)


def _at_least(what: str, least: float, ratio: float | None) -> Bar:
    return Bar(
        what, f"at least {least}", f"{ratio:.2f}" if ratio is not None else None, (ratio or 0) >= least
    )


def _rate(turn: of.Alone | of.Crowd) -> float:
    return turn.rate


def _p99(turn: of.Crowd) -> float:
    return percentile(turn.waits, 99)


def _median(turns: Sequence[_T], value: Callable[[_T], float]) -> float:
    return median(map(value, turns))


def _ratio(ours: Sequence[_T], theirs: Sequence[_T], value: Callable[[_T], float]) -> float:
    return median(value(our) / value(their) for our, their in zip(ours, theirs, strict=True))


def _span(values: Sequence[float]) -> str:
    return f"{min(values):,.0f} to {max(values):,.0f}"
