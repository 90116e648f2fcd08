"""Count the lines of logs that copylogs hands out, until stopped."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string

from components.exceptions import ComponentsError
from components.management.options import add_heartbeat_file, add_job, natural
from components.management.running import Run, run_daemon
from components.services.logs import LEASE, PLACES, Aggregation, note_job

_LEVELS = ("country", "region", "city")
_FORMATS = ("book", "combined", "json")


class Command(BaseCommand):
    help = (
        "Counts the lines that copylogs hands out, by day and by the country, region and city of their address; any "
        "number of these may run, on any number of machines. Each line counts once, whichever of them dies. The first "
        "SIGTERM or Ctrl-C flushes what is counted, the second ends at once. Exit codes: 0 stopped as asked; 1 ended "
        "by an error; 2 wrong usage, no table of addresses, or Redis does not answer at the start."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_job(parser)
        _add_reading(parser)
        parser.add_argument(
            "--level", choices=_LEVELS, help="The finest places that are counted (default: city)."
        )
        parser.add_argument(
            "--table", metavar="NAME", help="The table of addresses, of importgeoip (default: default)."
        )
        parser.add_argument(
            "--callback",
            action="append",
            default=[],
            metavar="DOTTED.CLASS",
            help="Count by this class in place of places: block(columns) is given the lines, flush() says what to add "
            "to which tables. May be given several times.",
        )
        parser.add_argument(
            "--aggregation",
            metavar="NAME",
            help="What the callbacks count for. Each aggregation gets every line, once.",
        )
        parser.add_argument(
            "--lease",
            type=natural,
            default=int(LEASE),
            metavar="SECONDS",
            help=f"After so long others count what a dead worker held (default: {LEASE:g}). A chunk must take less.",
        )
        parser.add_argument("--drain", action="store_true", help="End when nothing is left to count.")
        add_heartbeat_file(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            worker = _worker(options)
            note_job(options["job"])
        except ComponentsError as error:
            raise CommandError(str(error), returncode=2) from None
        how = Run(verbosity=options["verbosity"], heartbeat_file=options["heartbeat_file"])
        what = f"Logs of job {options['job']!r} for {worker.aggregation.name!r}, by {worker.reader.kernel.name}"
        run_daemon(worker, f"{what}, {worker.consumer.id}", how)


def _add_reading(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--format", choices=_FORMATS, default="book", help="What a line is like (default: book).")
    which.add_argument(
        "--pattern",
        metavar="REGEX",
        help="A regular expression for lines that are like nothing else, with groups called ip and time.",
    )
    parser.add_argument(
        "--json-keys",
        metavar="IP,TIME",
        help="Where --format json finds address and time, such as request.ip,at (default: ip,time).",
    )
    parser.add_argument(
        "--days",
        type=natural,
        metavar="N",
        help="Lines of days longer ago are late: counted as rejected (default: those before 1970).",
    )


def _worker(options: dict[str, Any]) -> Any:
    """Raises ComponentsError, CommandError."""
    from components.services.lines import LineReader  # the packages of the extra "logs" are told when they are missing
    from components.workers.logs import LogWorker

    form, shown = _format(options)
    callbacks, level = _callbacks(options)
    return LogWorker(
        Aggregation(options["aggregation"] or PLACES, job=options["job"], lease=options["lease"]),
        LineReader(form),
        callbacks,
        days=options["days"],
        drains=options["drain"],
        about=(shown, level),
    )


def _format(options: dict[str, Any]) -> tuple[Any, str]:
    from components.services.lines import JsonLines, Pattern, find_format

    if options["pattern"] is not None:
        return Pattern(options["pattern"]), options["pattern"]
    if (given := options["json_keys"]) is None:
        return find_format(options["format"]), options["format"]
    address, comma, time = given.partition(",")
    if options["format"] != "json" or not (address and comma and time):
        raise CommandError("--json-keys IP,TIME names two keys, and needs --format json.", returncode=2)
    return JsonLines(address, time), f"json {given}"


def _callbacks(options: dict[str, Any]) -> tuple[list[Callable[[], Any]], str]:
    given = options["callback"]
    if bool(given) != (options["aggregation"] not in (None, PLACES)):
        raise CommandError(
            f"--callback needs --aggregation NAME, and that needs --callback; {PLACES!r} counts places.", returncode=2
        )
    if given:
        if options["level"] or options["table"]:
            raise CommandError("--level and --table are for places, which callbacks do not count.", returncode=2)
        return [_import(path) for path in given], ", ".join(given)
    from components.services.geo import GeoTable
    from components.services.traffic.places import PlaceCounter

    level, table = options["level"] or "city", options["table"] or "default"
    GeoTable.load(table)
    return [partial(PlaceCounter, table, level=level)], level


def _import(path: str) -> Callable[[], Any]:
    try:
        found = import_string(path)
    except ImportError as error:
        raise CommandError(f"--callback {path}: {error}.", returncode=2) from None
    if missing := [name for name in ("block", "flush") if not callable(getattr(found, name, None))]:
        raise CommandError(f"--callback {path}: it has no {' and no '.join(missing)}().", returncode=2)
    made: Callable[[], Any] = found
    return made
