"""
Task queues, ours against others: `python benchmarks/queues.py`; docs/benchmarks.md says what it measures.

One private Redis server for all, one worker process each, in turns. Peers that are not installed
are left out.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

import django
from redis import Redis

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import peers, report
from benchmarks.bench import FOLDER, URL, Bench, Stuck
from benchmarks.peers.base import Peer
from benchmarks.turns import Turn, take_turn
from components.embedded import EmbeddedServer

NAPS = 3_000  # tasks of 10 ms: a second's work for 32 threads
NAP_ROUNDS = 3  # at most: their spread is small


def main() -> None:
    options = read_options()
    with standing_bench() as bench:
        print(report.conditions(bench.redis, options.rounds), flush=True)
        if report.load() > report.BUSY:
            print("Others use this machine: trust no figure, and ratios but roughly.", flush=True)
        compare(bench, options)
        look_closer(bench, options)


def read_options() -> Namespace:
    parser = ArgumentParser(description="Task queues, ours against others.")
    parser.add_argument(
        "--tasks", type=int, default=5_000, help="Tasks a turn (default: 5000); slow peers get less."
    )
    parser.add_argument("--rounds", type=int, default=5, help="Turns of each system (default: 5).")
    parser.add_argument(
        "--peers",
        default=",".join(peers.USUAL),
        help=f"Some of {','.join(peers.PEERS)} (default: {','.join(peers.USUAL)}); '' for none.",
    )
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    for name in options.peers:
        if name not in peers.PEERS:
            parser.error(f"--peers: there is no {name!r}; known are {', '.join(peers.PEERS)}.")
    return options


@contextmanager
def standing_bench() -> Iterator[Bench]:
    """A server like one in production, except that it never rewrites its file in the middle of a turn."""
    with TemporaryDirectory(prefix="benchmark-") as path:
        marks = Path(path, "marks")
        marks.mkdir()
        settings = {"auto-aof-rewrite-percentage": "0"}
        with EmbeddedServer(Path(path, "redis"), appendfsync="everysec", options=settings) as server:
            os.environ.update({URL: server.url, FOLDER: str(marks)})
            os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
            django.setup()
            with Redis.from_url(server.url) as redis:
                yield Bench(redis)


def compare(bench: Bench, options: Namespace) -> None:
    """Ours and the others, in turns."""
    from benchmarks.alone import engine
    from benchmarks.peers.ours import Ours

    ours = Ours("components", our_version())
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
    for table in (report.promises(systems), report.rates(turns, counts, ours.name), report.costs(turns)):
        print("", *table, sep="\n", flush=True)


def look_closer(bench: Bench, options: Namespace) -> None:
    """What only ours is asked for."""
    from benchmarks.alone import latency, naps
    from benchmarks.peers.ours import Ours, OursNapping

    say("latency")
    idle = latency(bench, Ours("components", our_version()))
    say("")
    print("", *report.latencies(idle), sep="\n", flush=True)
    napping, napped = OursNapping("components", our_version()), []
    for number in range(1, min(options.rounds, NAP_ROUNDS) + 1):
        say(f"tasks of 10 ms, round {number}")
        napped.append(naps(bench, napping, NAPS))
    say("")
    print("", report.naps(napped), sep="\n")


def find(names: list[str]) -> Iterator[Peer]:
    """The peers of those names that are installed."""
    for name in names:
        peer = peers.find(name)
        if peer is not None:
            yield peer
        else:
            print(f"{name} is not installed, and left out: pip install -r benchmarks/requirements.txt")


def our_version() -> str:
    try:
        return version("components")
    except PackageNotFoundError:
        return "(this checkout)"


def say(what: str) -> None:
    """Where we are, for who looks on; no part of the report."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
