"""Load the cached rows of models that are due, until stopped."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from components.kit.translation import counted
from components.services.rows import AT_A_TIME, LEASE
from components.services.rows.models import cached_rows
from components.services.rows.worker import RowWorker
from components.workers.options import WrongUsage, add_limits, add_running, find_limits, natural
from components.workers.running import Run, run


class Command(BaseCommand):
    help = (
        "Reloads cached rows when they are due; any number of daemons may run. At the first SIGTERM or "
        "Ctrl-C, the batch is finished; the second ends the daemon at once. Exit codes: 0 stopped as asked; "
        "1 ended with an error; 2 wrong usage, or Redis does not answer at the start."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--batch",
            type=natural,
            default=AT_A_TIME,
            metavar="N",
            help=f"Load about N rows at a time (default: {AT_A_TIME}).",
        )
        parser.add_argument(
            "--lease",
            type=natural,
            default=int(LEASE),
            metavar="SECONDS",
            help=f"How long loading a batch may take before others load its rows (default: {LEASE:g}). A row may be "
            "older than its delay by as much.",
        )
        add_limits(parser)
        add_running(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        sources = cached_rows()
        if not sources:
            raise WrongUsage("No model has cached rows. Derive a model from CachedRow.")
        worker = RowWorker(sources, batch=options["batch"], lease=options["lease"])
        worker.limits = find_limits(options)
        run(worker, f"Cached rows of {counted(len(sources), 'model')}", Run.of(options))
