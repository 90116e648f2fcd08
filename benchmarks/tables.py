"""What all reports share: Markdown tables, the conditions of a run, bars and what was measured for each."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

from redis import Redis

BUSY = 0.5  # processors in use by others, from which on figures are doubtful


class Bar(NamedTuple):
    """What was promised, and how it turned out; None where it could not be measured here."""

    what: str
    asked: str
    measured: str | None
    is_met: bool


def print_conditions(redis: Redis, *more: str) -> None:
    """When, on what, with which versions; and a warning where others use the machine."""
    info: Any = redis.info("server")
    libraries = ", ".join(f"{name} {version(name)}" for name in ("Django", "redis", "hiredis"))
    where = "unix socket" if not info["tcp_port"] else "TCP on this machine"
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"{os.cpu_count()} processors, {platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}, Redis {info['redis_version']} ({where}), {libraries}",
        *more,
    ]
    load = os.getloadavg()[0]
    print(f"{'; '.join(parts)}. Load when this began: {load:.2f}.", flush=True)
    if load > BUSY:
        print("Others use this machine: trust no figure, and ratios but roughly.", flush=True)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table of Markdown, after an empty line."""
    table = [list(head), *map(list, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    print()
    for number, row in enumerate(table):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print(end="", flush=True)


def print_bars(bars: Iterable[Bar]) -> None:
    """The bars as a table."""
    print_table(["bar", "asked", "measured", "met"], _rows(bars))


def _rows(bars: Iterable[Bar]) -> Iterator[list[str]]:
    for bar in bars:
        if bar.measured is None:
            yield [bar.what, bar.asked, "not here", "-"]
        else:
            yield [bar.what, bar.asked, bar.measured, "yes" if bar.is_met else "**no**"]


def percentile(values: Iterable[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
