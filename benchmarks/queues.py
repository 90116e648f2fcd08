"""
Task queues, ours against others: `python benchmarks/queues.py`; docs/benchmarks.md says what it measures.

One private Redis server for all, one worker process each, in turns. Peers that are not installed
are left out.
"""

from __future__ import annotations

import platform
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import peers, report
from benchmarks.bench import Bench, Stuck, say
from benchmarks.peers.base import Peer
from benchmarks.server import standing_bench
from benchmarks.tables import print_conditions
from benchmarks.turns import Turn, take_turn

NAPS = 6_400  # tasks of 10 ms: two seconds' work for 32 threads
NAP_ROUNDS = 3  # at most: their spread is small


def main() -> None:
    options = read_options()
    with standing_bench(tcp=options.tcp) as bench:
        print_conditions(bench.redis, f"medians of {options.rounds} rounds")
        turns = compare(bench, options)
        look_closer(bench, options, turns)


def read_options() -> Namespace:
    parser = ArgumentParser(description="Task queues, ours against others.")
    parser.add_argument(
        "--tasks", type=int, default=20_000, help="Tasks a turn (default: 20000); slow peers get less."
    )
    parser.add_argument("--rounds", type=int, default=5, help="Turns of each system (default: 5).")
    parser.add_argument(
        "--peers",
        default=",".join(peers.USUAL),
        help=f"Some of {','.join(peers.PEERS)} (default: {','.join(peers.USUAL)}); '' for none.",
    )
    parser.add_argument(
        "--tcp", action="store_true", help="All over TCP on this machine, not the unix socket."
    )
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    for name in options.peers:
        if name not in peers.PEERS:
            parser.error(f"--peers: there is no {name!r}; known are {', '.join(peers.PEERS)}.")
    return options


def compare(bench: Bench, options: Namespace) -> report.Turns:
    """Ours and the others, in turns."""
    from benchmarks.alone import engine
    from benchmarks.peers.ours import Ours

    ours = Ours(report.OURS, our_version())
    systems: list[Peer] = [ours, *find(options.peers)]
    turns: dict[str, list[Turn]] = {report.ENGINE: [], **{peer.name: [] for peer in systems}}
    for number in range(1, options.rounds + 1):
        say(f"round {number} of {options.rounds}: engine")
        turns[report.ENGINE].append(engine(bench, options.tasks))
        for peer in list(systems):
            say(f"round {number} of {options.rounds}: {peer.name}")
            try:
                turns[peer.name].append(take_turn(bench, peer, options.tasks))
            except Stuck as stuck:
                print(f"{peer.name} did not come to its end, and is left out. Its log ends with:\n{stuck}")
                if peer is ours:
                    raise
                systems.remove(peer)
                del turns[peer.name]
    say("")
    counts = {report.ENGINE: options.tasks, **{peer.name: peer.count(options.tasks) for peer in systems}}
    report.print_comparison(systems, turns, counts)
    return turns


def look_closer(bench: Bench, options: Namespace, turns: report.Turns) -> None:
    """What only ours is asked for, and the bars."""
    from benchmarks.alone import latency, naps
    from benchmarks.peers.ours import Ours, OursNapping

    say("latency")
    idle = latency(bench, Ours(report.OURS, our_version()))
    napping, napped = OursNapping(report.OURS, our_version()), []
    for number in range(1, min(options.rounds, NAP_ROUNDS) + 1):
        say(f"tasks of 10 ms, round {number}")
        napped.append(naps(bench, napping, NAPS))
    say("")
    report.print_closer_look(idle, napped)
    report.print_promises(turns, idle, napped)


def find(names: list[str]) -> Iterator[Peer]:
    """The peers of those names that are installed."""
    for name in names:
        peer = peers.find(name)
        if peer is not None:
            yield peer
        else:
            print(f"{name} is not installed, and left out: pip install -r benchmarks/requirements.txt")
    if names:
        print(
            f"threadmill is left out: it needs Python 3.14, and this is {platform.python_version()}; "
            "nothing here measures it."
        )


def our_version() -> str:
    try:
        return version("components")
    except PackageNotFoundError:
        return "(this checkout)"


if __name__ == "__main__":
    main()
