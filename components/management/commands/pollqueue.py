"""Move due tasks to their queues, for workers that are too busy to do so."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from components.services.queues.worker.options import add_backend, find_backend
from components.services.queues.worker.worker import Poller
from components.workers.options import add_running
from components.workers.running import Run, run


class Command(BaseCommand):
    help = (
        "Moves delayed tasks to their queues when they are due, at most 100 ms late. Idle workers do this "
        "as well; run this command if all workers may be busy for a long time. SIGTERM or Ctrl-C stops it. "
        "Exit codes: those of runworker."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_backend(parser)
        add_running(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        backend = find_backend(options["backend"])
        run(Poller(backend.alias), "Poller", Run.of(options))
