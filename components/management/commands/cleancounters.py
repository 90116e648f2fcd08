"""Remove keys that do not belong to counters, and give an expiry to counters without one."""

from typing import Any

from django.core.management.base import BaseCommand

from components.kit.translation import counted
from components.services.counters import Cleaned, clean
from components.workers.running import command_errors


class Command(BaseCommand):
    help = (
        "Checks all keys of counters: removes keys that do not belong there or are outdated, and gives the "
        "others an expiry. Counters expire by themselves; this command is for keys that were restored, "
        "copied or left by another release. It can be stopped, repeated, and run twice at the same time. "
        "Exit codes: 0; 2 if Redis does not answer."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        verbose = options["verbosity"] > 1 or self.stdout.isatty()
        with command_errors():
            done = clean(self._tell if verbose else None)
        self._tell(done)

    def _tell(self, done: Cleaned) -> None:
        self.stdout.write(
            f"{counted(done.looked, 'key')} of counters: {done.removed:,} removed, {done.mended:,} repaired."
        )
