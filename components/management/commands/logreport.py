"""
Show where lines of logs came from: as a table for people, as JSON or CSV for programs.

The keys of the JSON and the first columns of the CSV are stable (docs/logs.md): keys may be added, but none is
removed or changes its meaning without another format number.
"""

import json
from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from typing import Any, get_args

from django.core.management.base import BaseCommand

from components.exceptions import InvalidName, InvalidValue
from components.kit.csv_files import write_csv
from components.management.output import NOTHING, table
from components.services.geo import Level, place_name
from components.services.logs import DEFAULT_JOB
from components.services.logs.traffic import NAMES, Others, Report, Row, Traffic, sheet
from components.workers.options import natural
from components.workers.running import command_errors

FORMAT = 1
_WRONG = 2  # exit code
_DAYS = 7


class Command(BaseCommand):
    help = (
        "Shows the places that log lines of some days came from, with their shares, and their growth "
        "over the same number of days before. Exit codes: 0; 2 for a wrong argument, or if Redis does not answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--job", default=DEFAULT_JOB, help=f"The job that counts them (default: {DEFAULT_JOB})."
        )
        parser.add_argument("--level", choices=get_args(Level), default="country", help="(default: country)")
        parser.add_argument(
            "--within",
            default="",
            metavar="PLACE",
            help="Only places within this country (such as US) or region (such as US/CA).",
        )
        parser.add_argument("--from", dest="first", type=_day, metavar="DAY", help="As 2011-10-10.")
        parser.add_argument(
            "--to",
            dest="last",
            type=_day,
            metavar="DAY",
            help="The last day (default: the last day that has lines).",
        )
        parser.add_argument(
            "--days",
            type=natural,
            metavar="N",
            help=f"The number of days, with --from or --to (default: {_DAYS}).",
        )
        parser.add_argument(
            "--top", type=natural, default=10, metavar="N", help="Show this many places (default: 10)."
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="Write JSON; the manual lists its keys.")
        form.add_argument("--csv", action="store_true", help="Write CSV, with a column for each day.")

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(InvalidValue, InvalidName, code=_WRONG):
            traffic = Traffic(options["job"])
            period = _period(traffic, options["first"], options["last"], options["days"])
            report = period and traffic.report(
                options["level"],
                first=period[0],
                last=period[1],
                within=options["within"],
                top=options["top"],
            )
            self._write(report, traffic.totals(), **options)

    def _write(self, report: Report | None, totals: dict[str, int], *, job: str, **options: Any) -> None:
        if options["json"]:
            self.stdout.write(json.dumps(_document(job, report, totals), indent=2))
        elif options["csv"]:
            write_csv(self.stdout, sheet(report) if report else [], names=NAMES, line_end="\n")
        else:
            said = _text(report) if report else [f"No lines were counted for the job {job!r}."]
            self.stdout.write("\n".join([*said, *_rejected(totals)]))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a day; write it like 2011-10-10") from None


def _period(
    traffic: Traffic, first: date | None, last: date | None, days: int | None
) -> tuple[date, date] | None:
    """Return the first and last day of the report; None if they depend on lines, and there are none."""
    if first and last and days:
        raise InvalidValue(
            "--from and --to determine the length of the period. Leave out one of --from, --to and --days."
        )
    length = (days or _DAYS) - 1
    if first and days:
        return first, _moved(first, length)
    if last and not first:
        return _moved(last, -length), last
    if first and last:
        return first, last
    latest = traffic.latest(days or _DAYS)
    return (first, max(first, latest[1])) if latest and first else latest


def _moved(day: date, days: int) -> date:
    try:
        return date.fromordinal(day.toordinal() + days)
    except (OverflowError, ValueError):
        raise InvalidValue(f"{abs(days):,} days from {day} is outside of the years 1 to 9999.") from None


def _document(job: str, report: Report | None, totals: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {"format": FORMAT, "job": job, "report": None, "totals": totals}
    if report:
        found["report"] = {
            "level": report.level,
            "within": report.within,
            "first": report.first.isoformat(),
            "last": report.last.isoformat(),
            "days": [day.isoformat() for day in report.days],
            **_figures(report),
            "rows": [
                {"id": row.id, "name": place_name(row.id), "share": row.share, **_figures(row)}
                for row in report.rows
            ],
            "others": {
                "places": report.others.places,
                "share": report.others.share,
                **_figures(report.others),
            },
        }
    return found


def _figures(part: Report | Row | Others) -> dict[str, Any]:
    lines = part.total if isinstance(part, Report) else part.count
    return {"lines": lines, "before": part.before, "growth": part.growth, "by_day": list(part.by_day)}


def _text(report: Report) -> list[str]:
    days = len(report.days)
    period = f"{report.first} to {report.last} ({days:,} days)" if days > 1 else f"{report.first}"
    place = f" of {place_name(report.within)}" if report.within else ""
    headline = (
        f"Lines by {report.level}{place}, {period}: {report.total:,}; "
        f"in as many days before: {report.before:,} ({_growth(report.growth)})"
    )
    rows = [_row(row.id, place_name(row.id), row) for row in report.rows]
    if report.others.places:
        rows.append(_row(NOTHING, f"{report.others.places:,} more", report.others))
    return [headline, "", *table(rows)]


def _row(place: str, name: str, part: Row | Others) -> dict[str, str]:
    figures = {">lines": f"{part.count:,}", ">share": f"{part.share:.1%}", ">growth": _growth(part.growth)}
    return {"place": place, "name": name, **figures}


def _growth(growth: float | None) -> str:
    return NOTHING if growth is None else f"{growth:+.1%}"


def _rejected(totals: dict[str, int]) -> list[str]:
    """Return a line about all days, since rejected lines belong to none."""
    if not totals:
        return []
    reasons = sorted(set(totals) - {"lines", "counted"})
    rejected = ", ".join(f"{totals[reason]:,} {reason}" for reason in reasons if totals[reason])
    counted = f"{totals.get('counted', 0):,} of {totals.get('lines', 0):,} lines ever read were counted"
    return [f"{counted}; rejected: {rejected or 'none'}."]
