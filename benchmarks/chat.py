"""
Chats, ours against the book's and channel layers: `python benchmarks/chat.py`; docs/benchmarks.md says what it
measures.

One private Redis server for all, and the same processes, in turns. Peers that are not installed are left out.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import chatting
from benchmarks.bench import Bench, say
from benchmarks.chatting import fetches, report, turns
from benchmarks.crew import Crew
from benchmarks.server import standing_bench
from benchmarks.tables import print_conditions

SLICES = (
    5  # of the messages of a round: the shorter a turn, the more alike are the moments that a ratio compares
)
SIZES = (1_000, 5_000, 20_000)  # messages in a chat
BUSY = (0, 50, 500)  # of 500 chats
_T = TypeVar("_T")


def main() -> None:
    options = read_options()
    with standing_bench() as bench, Crew(2) as crew:
        print_conditions(bench.redis, f"medians of {options.rounds} rounds")
        channels = [name for name in chatting.CHANNELS if is_there(name)]
        systems = [*map(chatting.store, chatting.STORES), *map(chatting.channel, channels[1:])]
        report.print_guarantees(systems)
        measured = report.Measured(
            *compare_stores(bench, options), *compare_channels(bench, crew, channels, options)
        )
    report.print_bars_of(measured)


def read_options() -> Namespace:
    parser = ArgumentParser(description="Chats, ours against the book's and channel layers.")
    parser.add_argument("--rounds", type=int, default=5, help="Turns of each system (default: 5).")
    parser.add_argument("--messages", type=int, default=2_000, help="Sent in a round (default: 2000).")
    parser.add_argument("--wakes", type=int, default=1_000, help="Of a turn (default: 1000).")
    parser.add_argument(
        "--pause", type=float, default=0.005, help="Seconds between two wakes, on average (default: 0.005)."
    )
    return parser.parse_args()


def is_there(name: str) -> bool:
    if chatting.is_installed(name):
        return True
    print(f"{name} is not installed, and left out: pip install -r benchmarks/requirements.txt")
    return False


def compare_stores(bench: Bench, options: Namespace) -> tuple[report.Sends, report.Sizes, report.Fetches]:
    stores = {name: chatting.store(name) for name in chatting.STORES}
    sends = alternate(
        "send",
        list(stores),
        options.rounds * SLICES,
        lambda name: turns.send(bench, stores[name], options.messages // SLICES),
    )
    report.print_sends(sends)
    sizes = {
        name: {
            speakers: {count: turns.stored(bench, store, count, speakers) for count in SIZES}
            for speakers in (1, turns.MEMBERS)
        }
        for name, store in stores.items()
    }
    report.print_sizes(sizes)
    fetched: dict[str, dict[int, list[fetches.Fetch]]] = {name: {} for name in stores}
    for busy in BUSY:
        rounds = alternate(
            f"fetch, {busy} of {fetches.CHATS} chats",
            list(stores),
            options.rounds,
            lambda name: fetches.fetch(bench, stores[name], busy, 3),  # noqa: B023  called at once
        )
        for name, taken in rounds.items():
            fetched[name][busy] = taken
    report.print_fetches(fetched)
    return sends, sizes, fetched


def compare_channels(
    bench: Bench, crew: Crew, names: Sequence[str], options: Namespace
) -> tuple[dict[int, report.Spoken], report.Groups, report.Groups, report.Wakes]:
    spoken = {
        at_once: alternate(
            f"a group that does not read, {at_once} at once",
            names,
            options.rounds,
            lambda name: turns.spoken(bench, crew, name, options.messages, at_once),  # noqa: B023
        )
        for at_once in (1, turns.SPEAKERS)
    }
    for at_once, rounds in spoken.items():
        report.print_spoken(at_once, rounds)
    apart, together = (
        alternate(
            "a group",
            names,
            options.rounds,
            lambda name: turns.group(bench, crew, name, options.messages, together=is_together),  # noqa: B023
        )
        for is_together in (False, True)
    )
    report.print_groups("in another process", apart)
    report.print_groups("in the same process", together)
    wakes = alternate(
        "waking",
        [name for name in names if name in chatting.WAKERS],
        options.rounds,
        lambda name: turns.wake(bench, crew, name, options.wakes, options.pause),
    )
    report.print_wakes(wakes)
    return spoken, apart, together, wakes


def alternate(what: str, names: Sequence[str], rounds: int, turn: Callable[[str], _T]) -> dict[str, list[_T]]:
    """A turn of each in every round."""
    taken: dict[str, list[_T]] = {name: [] for name in names}
    for number in range(1, rounds + 1):
        for name in names:
            say(f"{what}, round {number} of {rounds}: {name}")
            taken[name].append(turn(name))
    say("")
    return taken


if __name__ == "__main__":
    main()
