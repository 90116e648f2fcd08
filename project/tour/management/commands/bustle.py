"""Let the townsfolk visit the demo's market and trade with each other, until stopped."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from project.tour import bustle


class Command(BaseCommand):
    help = "Lets the townsfolk of the demo visit its market, and trade with each other."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("port", type=int, help="of the site, on 127.0.0.1")

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        with suppress(KeyboardInterrupt):
            bustle.run(port)
