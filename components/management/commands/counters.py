"""
Show counters: for people as a table, for programs as JSON.

The keys of the JSON are stable (docs/counters.md): new ones may be added, but none is removed or changes its meaning
without another format number. The command only reads.
"""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand

from components.exceptions import InvalidName, InvalidValue
from components.management.output import document, instant, table
from components.services.counters import CounterReader, Series
from components.services.counters.charts.scales import rate, total
from components.services.counters.series import split_families
from components.workers.options import instant_from
from components.workers.running import command_errors

FORMAT = 1


class Command(BaseCommand):
    help = (
        "Shows counters: the named ones, the highest of a family, or the ones that counted last. "
        "Exit codes: 0; 1 for a wrong argument; 2 if Redis does not answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "names",
            nargs="*",
            metavar="NAME",
            help="The counters to show; 'requests:*' means the highest of a family.",
        )
        parser.add_argument("--top", metavar="FAMILY", help="Show the highest counters of this family.")
        parser.add_argument("--limit", type=int, default=20, help="Show this many (default: 20).")
        parser.add_argument(
            "--precision",
            type=int,
            default=60,
            metavar="SECONDS",
            help="The length of a slice (default: 60).",
        )
        for name, what in (("--since", "first"), ("--until", "end of the last")):
            parser.add_argument(name, metavar="INSTANT", help=f"The {what} slice, as mark --at takes it.")
        parser.add_argument("--json", action="store_true", help="Write JSON; the manual lists its keys.")

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(InvalidValue, InvalidName):
            found = self._read(options)
        if options["json"]:
            counters = [_document(series) for series in found.values()]
            self.stdout.write(json.dumps({"format": FORMAT, "counters": counters}, indent=2))
        else:
            self.stdout.write("\n".join(_text(found)))

    def _read(self, options: dict[str, Any]) -> dict[str, Series]:
        reader, limit, precision = CounterReader(), options["limit"], options["precision"]
        since, until = instant_from(options["since"]), instant_from(options["until"], is_end=True)
        names, families = split_families(options["names"])
        if options["top"] is not None:
            families.append(options["top"])
        if not names and not families:
            names = [info.name for info in reader.page(limit=limit)]
        for family in families:
            highest = reader.top(family, limit, precision=precision, since=since, until=until)
            names += [each.name for each in highest]
        return reader.read(names, precision, since=since, until=until, fill=None)


def _document(series: Series) -> dict[str, Any]:
    return {
        **document(series, "name", "precision", "since", "until", "unit", "total", "rate"),
        "samples": [document(sample, "at", "count") for sample in series],
    }


def _text(found: Mapping[str, Series]) -> list[str]:
    return table(
        [
            {
                "counter": series.name,
                ">total": total(series.total, series),
                ">rate": rate(series),
                ">last slice": total(series[-1].count or 0, series),
                "from": instant(series.since),
                "until": instant(series.until),
            }
            for series in found.values()
        ]
    )
