"""Count the lines of logs that copylogs hands out, until stopped."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from components.exceptions import ComponentsError
from components.services.logs import DEFAULT_JOB, LEASE, note_job
from components.services.logs.worker.options import make_worker
from components.workers.options import WrongUsage, add_limits, add_running, find_limits, natural
from components.workers.running import Run, run

_LEVELS = ("country", "region", "city")
_FORMATS = ("book", "combined", "json")


class Command(BaseCommand):
    help = (
        "Counts the lines that copylogs hands out, by day and by the country, region and city of their "
        "address. Any number of workers may run, on any number of machines; each line counts once, even if "
        "some of them die. The first SIGTERM or Ctrl-C flushes what is counted, the second ends at once. "
        "Without a table of addresses all places count as unknown, and paths and statuses as ever. "
        "Exit codes: 0 stopped as asked; 1 ended with an error; 2 wrong usage, no table of the name in --table, "
        "or Redis does not answer at the start."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--job",
            default=DEFAULT_JOB,
            help=f"Count what copylogs copies for this job (default: {DEFAULT_JOB}).",
        )
        _add_reading(parser)
        parser.add_argument("--level", choices=_LEVELS, help="The finest places to count (default: city).")
        parser.add_argument(
            "--by",
            metavar="NAMES",
            help="What else to count by: path, referrer and agent, with commas between them, or '' for none of them "
            "(default: those that the format has). See logs.md.",
        )
        parser.add_argument(
            "--table", metavar="NAME", help="The table of addresses, made by importgeoip (default: default)."
        )
        parser.add_argument(
            "--callback",
            action="append",
            default=[],
            metavar="DOTTED.CLASS",
            help="Count with this class instead of by places. Its block(columns) gets the lines, and its "
            "flush() returns the counts of each table. The option can be repeated.",
        )
        parser.add_argument(
            "--aggregation",
            metavar="NAME",
            help="The name of the aggregation that uses these callbacks. Each aggregation gets every line "
            "once.",
        )
        parser.add_argument(
            "--lease",
            type=natural,
            default=int(LEASE),
            metavar="SECONDS",
            help="How long others wait before they count the chunks of a dead worker (default: "
            f"{LEASE:g}). A chunk must take less.",
        )
        parser.add_argument("--drain", action="store_true", help="End when nothing is left to count.")
        add_limits(parser)
        add_running(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            worker = make_worker(options)
            note_job(options["job"])
        except ComponentsError as error:
            raise WrongUsage(str(error)) from None
        worker.limits = find_limits(options)
        what = (
            f"Logs of job {options['job']!r} for {worker.aggregation.name!r}, by {worker.reader.kernel.name}"
        )
        run(worker, what, Run.of(options))


def _add_reading(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--format", choices=_FORMATS, default="book", help="The format of lines (default: book)."
    )
    which.add_argument(
        "--pattern",
        metavar="REGEX",
        help="A regular expression for lines of any other format, with groups named ip and time.",
    )
    parser.add_argument(
        "--json-keys",
        metavar="IP,TIME",
        help="The fields with the address and the time for --format json, such as request.ip,at; optionally "
        "also those with the status, path, referrer and agent (default: ip,time,status,path,referrer,agent).",
    )
    parser.add_argument(
        "--days",
        type=natural,
        metavar="N",
        help="Reject lines that are more than N days old as late (default: lines before 1970).",
    )
    parser.add_argument(
        "--keep",
        type=natural,
        metavar="N",
        help="Once a day, remove counts that are more than N days old, and reject their lines as late "
        "(default: keep all).",
    )
