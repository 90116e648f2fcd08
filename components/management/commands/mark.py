"""Mark an instant, such as a deployment, in the charts of counters."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from components.exceptions import InvalidName, InvalidValue
from components.management.output import instant
from components.services.counters import Marks
from components.workers.options import instant_from
from components.workers.running import command_errors


class Command(BaseCommand):
    help = (
        "Marks an instant, such as a deployment, in the charts of counters. "
        "Exit codes: 0; 1 for a wrong argument; 2 if Redis does not answer."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="What happened, as 'version 1.2'.")
        help = "When, as 2026-01-31T12:00Z; without a zone, in that of the site (default: now)."
        parser.add_argument("--at", metavar="INSTANT", help=help)

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors(InvalidName, InvalidValue):
            mark = Marks().add(options["name"], instant_from(options["at"]))
        self.stdout.write(f"Marked {mark.name} at {instant(mark.at)}.")
