"""Do the work of the sweep task now; for cron, and for use after Redis has lost its data."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from components.exceptions import RedisUnavailable
from project.market.tasks import sweep


class Command(BaseCommand):
    help = "Open and end the listings that are due, and enqueue mail that is missing."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = sweep.call()
        except RedisUnavailable as error:
            raise CommandError(f"Redis is not reachable: {error}", returncode=2) from error
        self.stdout.write(", ".join(f"{what}: {number}" for what, number in done.items()))
