"""
Locks and semaphores, ours against others: `python benchmarks/locks.py`; docs/benchmarks.md says what it measures.

One private Redis server for all, and the same processes, in turns. Peers that are not installed are left out.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import locking
from benchmarks.bench import Bench, Stuck, say
from benchmarks.crew import Crew
from benchmarks.locking import report, turns
from benchmarks.locking.base import LIMIT, System
from benchmarks.server import standing_bench
from benchmarks.tables import print_conditions

SLICES = (
    5  # of the pairs of a round: the shorter a turn, the more alike are the moments that a ratio compares
)
_T = TypeVar("_T")


def main() -> None:
    options = read_options()
    with (
        standing_bench(tcp=options.tcp) as bench,
        Crew(max(report.PROCESSES, report.PERMIT_PROCESSES)) as crew,
    ):
        print_conditions(bench.redis, f"medians of {options.rounds} rounds")
        measured = report.Measured(
            *compare_locks(bench, crew, options), *compare_semaphores(bench, crew, options)
        )
    report.print_bars_of(measured)


def read_options() -> Namespace:
    parser = ArgumentParser(description="Locks and semaphores, ours against others.")
    parser.add_argument("--rounds", type=int, default=5, help="Turns of each system (default: 5).")
    parser.add_argument(
        "--pairs", type=int, default=2_000, help="Uncontended pairs of a round (default: 2000)."
    )
    parser.add_argument(
        "--acquisitions", type=int, default=50, help="Of each process in a crowd, a turn (default: 50)."
    )
    parser.add_argument("--hand-overs", type=int, default=25, help="Of a turn (default: 25).")
    known = [*locking.LOCKS, *locking.SEMAPHORES]
    parser.add_argument(
        "--peers", default=",".join(known), help=f"Some of {','.join(known)} (default: all); '' for none."
    )
    parser.add_argument(
        "--tcp", action="store_true", help="All over TCP on this machine, not the unix socket."
    )
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    for name in options.peers:
        if name not in known:
            parser.error(f"--peers: there is no {name!r}; known are {', '.join(known)}.")
    return options


def compare_locks(
    bench: Bench, crew: Crew, options: Namespace
) -> tuple[report.Alone, report.Crowds, report.HandOvers]:
    systems = find([*locking.OURS_LOCKS, *(name for name in options.peers if name in locking.LOCKS)])
    names = [system.name for system in systems]
    report.print_guarantees("lock", systems)
    by_name = {system.name: system for system in systems}

    def pairs(name: str) -> turns.Alone:
        if name == report.FLOOR:
            return turns.floor(bench, options.pairs // SLICES)
        return turns.pairs(bench, by_name[name], options.pairs // SLICES)

    alone = alternate("pairs", [report.FLOOR, *names], options.rounds * SLICES, pairs)
    report.print_alone("lock", alone)
    crowds = alternate(
        "contention",
        names,
        options.rounds,
        lambda name: turns.crowd(bench, crew, name, report.PROCESSES, options.acquisitions),
    )
    report.print_crowds(f"lock, {report.PROCESSES} processes", "lost updates", crowds, locking.OURS)
    handed = alternate(
        "hand-over",
        names,
        options.rounds,
        lambda name: turns.hand_over(bench, crew, name, options.hand_overs),
    )
    report.print_hand_overs(handed)
    return alone, crowds, handed


def compare_semaphores(bench: Bench, crew: Crew, options: Namespace) -> tuple[report.Alone, report.Crowds]:
    wanted = [name for name in options.peers if name in locking.SEMAPHORES]
    systems = find([*locking.OUR_SEMAPHORES, *wanted])
    names = [system.name for system in systems]
    report.print_guarantees("semaphore", systems)
    by_name = {system.name: system for system in systems}
    alone = alternate(
        "permits",
        names,
        options.rounds * SLICES,
        lambda name: turns.pairs(bench, by_name[name], options.pairs // SLICES),
    )
    report.print_alone("semaphore", alone)
    crowds = alternate(
        "permits, contention",
        names,
        options.rounds,
        lambda name: turns.permits(bench, crew, name, report.PERMIT_PROCESSES, options.acquisitions),
    )
    head = f"semaphore of {LIMIT}, {report.PERMIT_PROCESSES} processes"
    report.print_crowds(head, "over the limit", crowds, locking.OUR_SEMAPHORE)
    return alone, crowds


def find(names: Sequence[str]) -> list[System]:
    """The systems of those names that are installed."""
    found = []
    for name in names:
        system = locking.find(name)
        if system is not None:
            found.append(system)
        else:
            print(f"{name} is not installed, and left out: pip install -r benchmarks/requirements.txt")
    return found


def alternate(what: str, names: Sequence[str], rounds: int, turn: Callable[[str], _T]) -> dict[str, list[_T]]:
    """A turn of each in every round; who does not come to its end is left out from there on, but not ours."""
    taken: dict[str, list[_T]] = {name: [] for name in names}
    for number in range(1, rounds + 1):
        for name in list(taken):
            say(f"{what}, round {number} of {rounds}: {name}")
            try:
                taken[name].append(turn(name))
            except Stuck as stuck:
                if name not in locking.PEERS:
                    raise
                print(f"{name} did not come to its end, and is left out here:\n{stuck}")
                del taken[name]
    say("")
    return taken


if __name__ == "__main__":
    main()
