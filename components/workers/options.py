"""Options of the commands: their types, and the options that several commands share."""

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from components.kit.decoding import typed_instant
from components.workers.limits import LOWERED, Limits, memory
from components.workers.reexec import QUIETED

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


class WrongUsage(CommandError):
    """A command was called in a wrong way, or what it needs is not there: it ends with 2."""

    def __init__(self, said: str) -> None:
        super().__init__(said, returncode=2)


def natural(text: str) -> int:
    """Parse a whole number above zero, for argparse."""
    if not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def size(text: str) -> int:
    """Parse a number of bytes such as 500K, 256M or 1G, for argparse."""
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in _UNITS else (text, "")
    if not number.isdigit() or int(number) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of bytes, such as 500K, 256M or 1G")
    return int(number) * _UNITS[unit]


def seconds(text: str) -> float:
    """Parse a number of seconds, 0 or more, for argparse."""
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
        help="Touch this file at least every 5 seconds while the loop runs, even while Redis is away, and "
        "remove it at a clean exit.",
    )


def add_shutdown_timeout(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--shutdown-timeout",
        type=seconds,
        default=25.0,
        metavar="SECONDS",
        help="How long running tasks may take to finish when stopping (default: 25).",
    )


def add_reload(parser: ArgumentParser, but: str = "") -> None:
    parser.add_argument(
        "--reload",
        action="store_true",
        default=settings.DEBUG,
        help=f"Restart workers when code changes, after running tasks have finished (default: as DEBUG).{but}",
    )
    parser.add_argument("--no-reload", dest="reload", action="store_false", help="Do not.")


def add_limits(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--max-memory",
        type=natural,
        metavar="MB",
        help="Exit with code 0 when the process uses this much memory, so that a service manager (or the "
        "parent of --processes) starts a fresh one. Linux reports the current use, other systems the "
        "highest so far. Each limit is lowered at random by up to a tenth.",
    )
    parser.add_argument(
        "--max-time",
        type=natural,
        metavar="SECONDS",
        help="Exit with code 0 when the process has run for this long.",
    )


def add_processes(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--processes",
        type=natural,
        default=1,
        metavar="N",
        help="Run this many worker processes under a parent, which replaces the ones that end (default: 1, "
        "without a parent).",
    )
    parser.add_argument("--child", type=int, help=SUPPRESS)


def find_limits(options: Mapping[str, Any]) -> Limits:
    """Return the limits that the options give. Raises CommandError if the process would reach one at once."""
    most = options["max_memory"]
    if most is not None and memory() >= most * (1 - LOWERED):
        raise WrongUsage(
            f"--max-memory {most}: the process uses {memory():.0f} MB before it starts to work. "
            "Allow a few hundred MB more."
        )
    return Limits(options.get("max_tasks"), most, options["max_time"])


def instant_from(text: str | None, *, is_end: bool = False) -> datetime | None:
    """Return the instant that was typed, as typed_instant() does. Raises CommandError."""
    if text is None:
        return None
    if found := typed_instant(text, is_end=is_end):
        return found
    raise CommandError(f"{text!r} is not an instant. Write it like 2026-01-31T12:00Z.")
