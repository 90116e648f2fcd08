"""The tables of chat.py: the median of the rounds, and each ratio's median over the rounds; then the bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeAlias, TypeVar

from benchmarks.chatting import BOOK, CORE, OURS, PUBSUB, turns
from benchmarks.chatting import fetches as of_fetches
from benchmarks.chatting.base import System
from benchmarks.locking.turns import Alone
from benchmarks.tables import Bar, percentile, print_bars, print_table

WAKE_LIMIT = 0.010  # seconds

Sends: TypeAlias = Mapping[str, Sequence[Alone]]
#: System -> messages per second.
Spoken: TypeAlias = Mapping[str, Sequence[float]]
Groups: TypeAlias = Mapping[str, Sequence[turns.Group]]
Wakes: TypeAlias = Mapping[str, Sequence[turns.Wakes]]
#: System -> number of speakers -> number of messages -> bytes for each.
Sizes: TypeAlias = Mapping[str, Mapping[int, Mapping[int, float]]]
#: System -> number of chats with something new -> the rounds.
Fetches: TypeAlias = Mapping[str, Mapping[int, Sequence[of_fetches.Fetch]]]
_T = TypeVar("_T")


class Measured(NamedTuple):
    """All rounds of all systems."""

    sends: Sends
    sizes: Sizes
    fetches: Fetches
    #: By how many were under way at once.
    spoken: Mapping[int, Spoken]
    apart: Groups
    together: Groups
    wakes: Wakes


def print_guarantees(systems: Sequence[System]) -> None:
    """What each figure contains."""
    print_table(
        ["system", "kept", "in order", "sent again after a lost reply", "only members", "who waits"],
        ([f"{each.name} {each.version}".strip(), *vars(each.guarantees).values()] for each in systems),
    )


def print_sends(sends: Sends) -> None:
    """One process that sends, nobody who reads."""
    print_table(
        [
            "send to a chat of 10",
            "messages/s",
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
                f"{_ratio(sends[OURS], rounds, lambda turn: turn.rate):.2f}",
                f"{_median(rounds, lambda turn: turn.client_cpu):.0f}",
                f"{_median(rounds, lambda turn: turn.server_cpu):.0f}",
                f"{_median(rounds, lambda turn: turn.commands):.1f}",
                f"{_median(rounds, lambda turn: turn.reads):.1f}",
            ]
            for name, rounds in sends.items()
        ),
    )


def print_sizes(sizes: Sizes) -> None:
    """Messages of 100 letters in one chat."""
    counts = list(sizes[OURS][1])
    print_table(
        ["bytes of Redis per message", "speakers", *(f"{count:,} messages" for count in counts)],
        (
            [name, str(speakers), *(f"{found[count]:.0f}" for count in counts)]
            for name, by_speakers in sizes.items()
            for speakers, found in by_speakers.items()
        ),
    )


def print_fetches(fetches: Fetches) -> None:
    """A person in 500 chats."""
    print_table(
        [
            "in 500 chats",
            "chats with 2 new ones",
            "fetch, ms",
            "round trips",
            "acknowledge, ms",
            "round trips",
        ],
        (
            [
                name,
                str(busy),
                f"{_median(rounds, lambda turn: turn.fetch_seconds) * 1e3:.1f}",
                str(max(turn.fetch_trips for turn in rounds)),
                f"{_median(rounds, lambda turn: turn.read_seconds) * 1e3:.1f}",
                str(max(turn.read_trips for turn in rounds)),
            ]
            for name, by_busy in fetches.items()
            for busy, rounds in by_busy.items()
        ),
    )


def print_spoken(at_once: int, spoken: Spoken) -> None:
    """A group of ten who do not read meanwhile."""
    print_table(
        [f"send to 10 who do not read, {at_once} at once", "messages/s", "slowest to fastest", "ours/theirs"],
        (
            [
                name,
                f"{median(rounds):,.0f}",
                _span(rounds),
                f"{_ratio(spoken[OURS], rounds, float):.2f}",
            ]
            for name, rounds in spoken.items()
        ),
    )


def print_groups(where: str, groups: Groups) -> None:
    """A group of ten who read."""
    print_table(
        [
            f"10 read {where}",
            "sent/s",
            "ours/theirs",
            "had by all/s",
            "slowest to fastest",
            "ours/theirs",
            "Redis CPU µs",
            "lost",
        ],
        (
            [
                name,
                f"{_median(rounds, lambda turn: turn.sent):,.0f}",
                f"{_ratio(groups[OURS], rounds, lambda turn: turn.sent):.2f}",
                f"{_median(rounds, lambda turn: turn.had):,.0f}",
                _span([turn.had for turn in rounds]),
                f"{_ratio(groups[OURS], rounds, lambda turn: turn.had):.2f}",
                f"{_median(rounds, lambda turn: turn.server_cpu):.0f}",
                f"{sum(turn.lost for turn in rounds):,}",
            ]
            for name, rounds in groups.items()
        ),
    )


def print_wakes(wakes: Wakes) -> None:
    """One of a thousand who wait."""
    print_table(
        [f"one of {turns.WAITERS:,} who wait", "p50 ms", "p99 ms", "max ms", "lost"],
        (
            [
                name,
                f"{_median(rounds, lambda turn: median(turn.times)) * 1e3:.2f}",
                f"{_median(rounds, _p99) * 1e3:.2f}",
                f"{max(max(turn.times) for turn in rounds) * 1e3:.2f}",
                f"{sum(turn.lost for turn in rounds):,}",
            ]
            for name, rounds in wakes.items()
        ),
    )


def print_bars_of(measured: Measured) -> None:
    print_bars([*_of_stores(measured), *_of_channels(measured)])


def _of_stores(measured: Measured) -> Iterator[Bar]:
    ratio = _ratio(measured.sends[OURS], measured.sends[BOOK], lambda turn: turn.rate)
    yield Bar("send, times the book's", "at least 3", f"{ratio:.2f}", ratio >= 3)
    for speakers, what in ((1, "of who has read all"), (turns.MEMBERS, "of ten who never read")):
        ours, theirs = measured.sizes[OURS][speakers], measured.sizes[BOOK][speakers]
        part = max(ours[count] / theirs[count] for count in ours)
        yield Bar(
            f"bytes of a message {what}, part of the book's", "at most 0.75", f"{part:.2f}", part <= 0.75
        )
    trips = max(turn.fetch_trips for rounds in measured.fetches[OURS].values() for turn in rounds)
    yield Bar("fetch in 500 chats, round trips", "at most 2", str(trips), trips <= 2)


def _of_channels(measured: Measured) -> Iterator[Bar]:
    wakes = measured.wakes
    for at_once, spoken in measured.spoken.items():
        for name, least in ((CORE, 20), (PUBSUB, 2)):
            ratio = _ratio(spoken[OURS], spoken[name], float) if name in spoken else None
            shown = f"{ratio:.2f}" if ratio is not None else None
            what = f"send to 10, {at_once} at once, times {name}"
            yield Bar(what, f"at least {least}", shown, (ratio or 0) >= least)
    for where, groups in (("apart", measured.apart), ("together", measured.together)):
        for name, least in ((CORE, 20), (PUBSUB, 2)):
            ratio = _ratio(groups[OURS], groups[name], lambda turn: turn.had) if name in groups else None
            shown = f"{ratio:.2f}" if ratio is not None else None
            yield Bar(f"had by 10, {where}, times {name}", f"at least {least}", shown, (ratio or 0) >= least)
    lost = sum(turn.lost for turn in (*measured.apart[OURS], *measured.together[OURS], *wakes[OURS]))
    yield Bar("messages lost", "none", f"{lost:,}", not lost)
    late = _median(wakes[OURS], _p99)
    yield Bar(
        f"wake-up of one of {turns.WAITERS:,}, p99",
        f"at most {WAKE_LIMIT * 1e3:.0f} ms",
        f"{late * 1e3:.2f} ms",
        late <= WAKE_LIMIT,
    )


def _p99(turn: turns.Wakes) -> float:
    return percentile(turn.times, 99)


def _median(rounds: Sequence[_T], value: Callable[[_T], float]) -> float:
    return median(map(value, rounds))


def _ratio(ours: Sequence[_T], theirs: Sequence[_T], value: Callable[[_T], float]) -> float:
    return median(value(our) / value(their) for our, their in zip(ours, theirs, strict=True))


def _span(values: Sequence[float]) -> str:
    return f"{min(values):,.0f} to {max(values):,.0f}"
