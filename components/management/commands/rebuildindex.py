"""Load address books from the tables of their models."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from components.exceptions import LoadSuperseded, RedisUnavailable
from components.kit.translation import counted
from components.services.autocomplete.models import Fed, feeding, model_books
from components.workers.options import WrongUsage

_PACE = 2.0  # seconds between two lines of progress


class Command(BaseCommand):
    help = (
        "Loads address books from their models, after changes that send no signals: bulk_create(), update(), "
        "raw SQL. Searches use the old book until the new one is complete. Exit codes: 0; 1 if Redis does not "
        "answer, or if another load of the same book began; 2 if there is no such book."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "books",
            nargs="*",
            metavar="BOOK",
            help='Only these books, such as "guild:7", or all of a kind, "guild:{}" (default: all that models feed).',
        )
        parser.add_argument("--database", metavar="ALIAS", help="Read the rows from this database.")

    def handle(self, *args: Any, **options: Any) -> None:
        known = model_books()
        wanted = {name: feeding(name) for name in options["books"] or known}
        if unknown := [name for name, fed in wanted.items() if fed is None]:
            raise WrongUsage(
                f"No model feeds {', '.join(unknown)}. Models feed: {', '.join(known) or 'none'}."
            )
        if not known:
            self.stdout.write("No model feeds a book: none is declared with ModelBook or ModelBooks.")
        for fed in wanted.values():
            if fed:
                self._rebuild(fed, options["database"])

    def _rebuild(self, fed: Fed, database: str | None) -> None:
        started_at = said_at = time.monotonic()

        def progress(count: int) -> None:
            nonlocal said_at
            if (now := time.monotonic()) - said_at >= _PACE:
                said_at = now
                self.stdout.write(f"{fed.name}: {counted(count, 'name')}")

        try:
            count = fed.rebuild(progress, using=database)
        except (LoadSuperseded, RedisUnavailable) as error:
            raise CommandError(f"{fed.name}: {error} The book is unchanged.") from None
        self.stdout.write(f"{fed.name}: {counted(count, 'name')} in {time.monotonic() - started_at:.1f} s")
