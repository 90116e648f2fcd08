"""Load players, items and staff to try the site with. Their passwords are public."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from project.market import demo


class Command(BaseCommand):
    help = "Load the demo data. Existing data are not changed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--force", action="store_true", help="also into a production site (DEBUG=0)")

    def handle(self, *args: Any, force: bool, **options: Any) -> None:
        if not (settings.DEBUG or force):
            raise CommandError("The demo users' passwords are public; use --force to load them all the same.")
        demo.load()
        players = ", ".join(demo.PLAYERS)
        self.stdout.write(
            f"Players {players}: password {demo.PLAYER_PASSWORD}; they may look at the control room."
        )
        self.stdout.write(f"Staff: admin, password {demo.ADMIN_PASSWORD};")
        self.stdout.write(f"       guard, password {demo.PLAYER_PASSWORD}, without any permission.")
