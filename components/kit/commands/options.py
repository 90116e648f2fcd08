"""The options of commands that run workers: their types, and those that several commands have."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from components.kit.commands.restarting import QUIETED
from components.kit.worker.limits import LOWERED, Limits, memory

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def natural(text: str) -> int:
    """An argparse type: a whole number above zero."""
    if not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def size(text: str) -> int:
    """An argparse type: a number of bytes, such as 500K, 256M or 1G."""
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in _UNITS else (text, "")
    if not number.isdigit() or int(number) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of bytes, such as 500K, 256M or 1G")
    return int(number) * _UNITS[unit]


def seconds(text: str) -> float:
    """An argparse type: a number of seconds, not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def add_running(parser: ArgumentParser) -> None:
    """The options of every worker: its heartbeat file, and what its parent, or the process before it, tells it."""
    add_heartbeat_file(parser)
    parser.add_argument("--lifeline", type=int, help=SUPPRESS)
    parser.add_argument(QUIETED, action="store_true", help=SUPPRESS)


def add_heartbeat_file(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--heartbeat-file",
        type=Path,
        metavar="PATH",
        help="A file to touch at least every 5 seconds while the loop turns, also while Redis is away; removed at a "
        "clean end.",
    )


def add_shutdown_timeout(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--shutdown-timeout",
        type=seconds,
        default=25.0,
        metavar="SECONDS",
        help="How long running tasks may take to finish when stopping (default: 25).",
    )


def add_limits(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--max-memory",
        type=natural,
        metavar="MB",
        help="End with 0 when the process holds so much memory, so that a service manager (or the parent of "
        "--processes) starts a fresh one: now on Linux, elsewhere the most that it ever held. Each limit is lowered "
        "by chance, by up to a tenth.",
    )
    parser.add_argument(
        "--max-time", type=natural, metavar="SECONDS", help="The same when it has run for so long."
    )


def add_processes(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--processes",
        type=natural,
        default=1,
        metavar="N",
        help="So many worker processes under a parent that replaces those that end (default: 1, without a parent).",
    )
    parser.add_argument("--child", type=int, help=SUPPRESS)


def find_limits(options: Mapping[str, Any]) -> Limits:
    """The limits that the options spell. Raises CommandError where a worker would reach one at once."""
    most = options["max_memory"]
    if most is not None and memory() >= most * (1 - LOWERED):
        raise CommandError(
            f"--max-memory {most}: the process holds {memory():.0f} MB before it has begun. "
            "Allow some hundred more.",
            returncode=2,
        )
    return Limits(options.get("max_tasks"), most, options["max_time"])
