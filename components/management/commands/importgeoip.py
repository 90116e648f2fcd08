"""Import a table of addresses from the files of a geolocation database, or remove it."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from components.conf import conf
from components.exceptions import (
    ExtraNotInstalled,
    GeoTableDamaged,
    InvalidGeoSource,
    InvalidName,
    InvalidValue,
    RedisUnavailable,
    UnknownFormat,
)
from components.kit.translation import counted
from components.services.geo import import_places, remove
from components.workers.options import WrongUsage
from components.workers.running import UNREACHABLE

_PACE = 2.0  # seconds between two lines of progress


class Command(BaseCommand):
    help = (
        "Imports the places of addresses from a MaxMind DB (GeoLite2, DB-IP: .mmdb), from the CSV files of "
        "GeoLite2 or GeoLiteCity, blocks and locations together, or from others whose columns you name. Lookups "
        "use the old table until the new one is whole. The command can be interrupted and repeated. Exit codes: "
        "0; 1 if the files cannot be imported; 2 if Redis does not answer, or a name or a package is wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "paths", nargs="*", metavar="PATH", help="A .mmdb, or all CSV files that belong together."
        )
        parser.add_argument(
            "--table", default="default", metavar="NAME", help="The name of the table (default: default)."
        )
        parser.add_argument(
            "--columns",
            type=lambda given: [each.strip() for each in given.split(",")],
            default=[],
            metavar="NAMES",
            help="The columns of CSV files without names of columns, such as those of DB-IP and IP2Location: first "
            "and last, or network; country, country_name, region, region_name and city; - for others.",
        )
        parser.add_argument(
            "--force", action="store_true", help="Store everything again, even parts that are stored already."
        )
        parser.add_argument(
            "--remove", action="store_true", help="Remove the table from Redis instead of importing one."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["remove"] and (options["paths"] or options["force"] or options["columns"]):
            raise WrongUsage("--remove cannot be used with files. Use it alone, or with --table.")
        if not options["remove"] and not options["paths"]:
            raise WrongUsage("No file is given. Name a .mmdb, or CSV files of blocks and of locations.")
        try:
            said = self._remove(options["table"]) if options["remove"] else self._import(options)
        except (InvalidGeoSource, OSError) as error:
            raise CommandError(f"{error} The table is unchanged.", returncode=1) from None
        except RedisUnavailable as error:
            raise CommandError(f"{error} {_hint(error)}", returncode=UNREACHABLE) from None
        except (GeoTableDamaged, InvalidName, InvalidValue, ExtraNotInstalled, UnknownFormat) as error:
            raise WrongUsage(str(error)) from None
        self.stdout.write(said)

    def _remove(self, table: str) -> str:
        if not remove(table):
            return f"There is no table {table!r}."
        return f"The table {table!r} is removed. Processes that have it in memory keep it until they end."

    def _import(self, options: dict[str, Any]) -> str:
        started_at = self._said_at = time.monotonic()
        progress = self._progress if options["verbosity"] else None
        done = import_places(
            *options["paths"],
            name=options["table"],
            columns=options["columns"],
            force=options["force"],
            progress=progress,
        )
        took = time.monotonic() - started_at
        said = "was current already" if done.was_current else "is current"
        nameless = f" {counted(done.nameless, 'range')} without a place." if done.nameless else ""
        places = counted(done.places, "place")
        return (
            f"{done.source}: {counted(done.ipv4, 'range')} of IPv4 and {done.ipv6:,} of IPv6, {places}, "
            f"{done.stored_size / 1e6:.1f} MB in Redis, in {took:.1f} s.{nameless} Version {done.version} {said}."
        )

    def _progress(self, text: str) -> None:
        if (now := time.monotonic()) - self._said_at >= _PACE:
            self._said_at = now
            self.stdout.write(text)


def _hint(error: RedisUnavailable) -> str:
    """Return what to do. A server that answers, but cannot write, does not have to be found."""
    if "does not answer" in str(error):
        return f"Is it running? CACHES[{conf().cache!r}] says where it should be."
    return "The table is unchanged. Run the command again: it stores what is missing."
