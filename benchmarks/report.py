"""
The output of all benchmarks: the conditions of a run, tables in Markdown, and demanded values (bars) beside the
figures.

A figure is the median of the rounds. A ratio is computed within each round, where ours and theirs run side by side,
and its median is shown. If the machine is slower for a while, figures change, but ratios hardly do.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from statistics import median
from typing import Any, NamedTuple

from redis import Redis

from benchmarks.harness import OURS, Rounds, System, Turn, alternate, find_installed, percentile

BUSY = 0.5  # if others use this many processors or more, figures are doubtful


def print_conditions(redis: Redis, *more: str) -> None:
    """Print the time and the machine of a run, and a warning if other programs use the machine."""
    info: Any = redis.info("server")
    valkey = info.get("valkey_version")
    server = f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("Django", "redis", "hiredis"))
    where = "unix socket" if not info["tcp_port"] else "TCP on this machine"
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"{os.cpu_count()} processors, {platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}, {server} ({where}), {libraries}",
        *filter(None, more),
    ]
    load = os.getloadavg()[0]
    print(f"{'; '.join(parts)}. Load when this began: {load:.2f}.", flush=True)
    if load > BUSY:
        print(
            "Other programs are using this machine. Do not trust the figures, and trust the ratios only roughly."
        )


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table after an empty line."""
    table = [list(head), *map(list, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    print()
    for number, row in enumerate(table):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print(end="", flush=True)


def print_promises(head: Sequence[str], systems: Iterable[System]) -> None:
    """Print the guarantees of each system that stand behind its figures."""
    print_table(head, ([f"{each.name} {each.version}".strip(), *each.promises] for each in systems))


def introduce(
    head: Sequence[str], systems: Iterable[System], only: Sequence[str] | None
) -> dict[str, System]:
    """Print the guarantees of ours and of the installed ones among *only* (None means all), and return these."""
    found = find_installed(systems, only)
    print_promises(head, found.values())
    return found


# Columns of a table of rounds


class Column(NamedTuple):
    head: str
    #: Return the text for one system, from all turns and its own turns.
    cell: Callable[[Rounds, list[Turn]], str]


def values(turns: Sequence[Turn], key: str) -> list[float]:
    """Return the values of a figure, without the rounds that have none."""
    return [turn[key] for turn in turns if turn.get(key) is not None]


def middle(turns: Sequence[Turn], key: str) -> float:
    """Return the median of a figure."""
    return median(values(turns, key))


def ratio(ours: Sequence[Turn], theirs: Sequence[Turn], key: str = "rate") -> float:
    """Return the median of the ratios of the rounds."""
    return median(our[key] / their[key] for our, their in zip(ours, theirs, strict=True))


def times(rounds: Rounds, ours: str, theirs: str, key: str = "rate") -> float | None:
    """Return the median ratio of two systems; None if one of them was not measured."""
    return ratio(rounds[ours], rounds[theirs], key) if ours in rounds and theirs in rounds else None


def mid(head: str, key: str, form: str = ",.0f", factor: float = 1) -> Column:
    """Make a column of medians."""
    return Column(head, lambda _, turns: show(values(turns, key), form, factor))


def show(found: Sequence[float], form: str, factor: float = 1) -> str:
    return format(median(found) * factor, form) if found else "-"


def most(head: str, key: str, form: str = ",.0f", factor: float = 1) -> Column:
    """Make a column of largest values."""
    return Column(head, lambda _, turns: format(max(values(turns, key)) * factor, form))


def total(head: str, key: str) -> Column:
    """Make a column of sums over all rounds."""
    return Column(head, lambda _, turns: f"{sum(values(turns, key)):,.0f}")


def span(key: str = "rate", form: Callable[[float], str] = "{:,.0f}".format) -> Column:
    """Make a column of the smallest and the largest value."""
    return Column(
        "slowest to fastest",
        lambda _, turns: f"{form(min(values(turns, key)))} to {form(max(values(turns, key)))}",
    )


def over(
    ours: str = OURS,
    key: str = "rate",
    form: str = ".2f",
    head: str = "ours/theirs",
    *,
    is_theirs: bool = False,
) -> Column:
    """
    Make a column of ratios of the system *ours* to the system of the row, or the other way round if *is_theirs*.
    """

    def cell(rounds: Rounds, turns: list[Turn]) -> str:
        pair = (turns, rounds[ours]) if is_theirs else (rounds[ours], turns)
        return format(ratio(*pair, key), form)

    return Column(head, cell)


def part(head: str, key: str, percent: int, form: str = ".2f", factor: float = 1e3) -> Column:
    """Make a column of percentiles of a figure that is a list: the median over the rounds, in milliseconds."""
    return Column(head, lambda _, turns: format(middle_part(turns, key, percent) * factor, form))


def middle_part(turns: Sequence[Turn], key: str, percent: int) -> float:
    """Return the median over the rounds of a percentile of a figure that is a list."""
    return median(percentile(turn[key], percent) for turn in turns)


#: Columns for the cost of a pair, a message and the like.
COST = (
    mid("client CPU µs", "client"),
    mid("Redis CPU µs", "redis"),
    mid("commands", "commands", ".1f"),
    mid("round trips", "reads", ".1f"),
)


def print_rounds(head: str, rounds: Rounds, *columns: Column) -> None:
    """Print a row for each system."""
    rows = ([name, *(column.cell(rounds, turns) for column in columns)] for name, turns in rounds.items())
    print_table([head, *(column.head for column in columns)], rows)


def compare(
    head: str, names: Iterable[str], rounds: int, turn: Callable[[str], Turn], *columns: Column
) -> Rounds:
    """Let each system take a turn in every round, print a row for each, and return their turns."""
    taken = alternate(head, names, rounds, turn)
    print_rounds(head, taken, *columns)
    return taken


# Bars


class Bar(NamedTuple):
    """A demanded value and the measured one; None if it could not be measured here."""

    what: str
    asked: str
    measured: str | None
    is_met: bool


def at_least(what: str, least: float, value: float | None, form: str = ".2f", unit: str = "") -> Bar:
    return Bar(
        what, f"at least {_asked(least, form, unit)}", _shown(value, form, unit), (value or 0) >= least
    )


def at_most(what: str, limit: float, value: float | None, form: str = ".2f", unit: str = "") -> Bar:
    """Make a bar for a value that must not be higher. None means that it was not measured."""
    return Bar(what, f"at most {_asked(limit, form, unit)}", _shown(value, form, unit), (value or 0) <= limit)


def none(what: str, value: float | None, form: str = ",.0f") -> Bar:
    return Bar(what, "none", _shown(value, form, ""), not value)


def _asked(number: float, form: str, unit: str) -> str:
    return (format(number, form) if form.endswith("%") else f"{number:,}") + unit


def _shown(value: float | None, form: str, unit: str) -> str | None:
    return None if value is None else format(value, form) + unit


def print_bars(bars: Iterable[Bar]) -> None:
    print_table(["bar", "asked", "measured", "met"], _rows(bars))


def _rows(bars: Iterable[Bar]) -> Iterator[list[str]]:
    for bar in bars:
        if bar.measured is None:
            yield [bar.what, bar.asked, "not here", "-"]
        else:
            yield [bar.what, bar.asked, bar.measured, "yes" if bar.is_met else "**no**"]
