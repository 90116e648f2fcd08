"""Run the tasks of a RedisBackend until stopped."""

import random
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from components.exceptions import InvalidName
from components.services.queues.backend import RedisBackend
from components.services.queues.new_task import check_queue
from components.services.queues.worker.choice import QueueChoice
from components.services.queues.worker.options import add_backend, find_backend
from components.services.queues.worker.tasks import TaskWorker
from components.services.queues.worker.worker import ALL
from components.workers.options import (
    WrongUsage,
    add_limits,
    add_processes,
    add_reload,
    add_running,
    add_shutdown_timeout,
    find_limits,
    natural,
)
from components.workers.processes import Program
from components.workers.reexec import command_line
from components.workers.running import Run, run, run_many


class Command(BaseCommand):
    help = (
        "Runs queued tasks. At the first SIGTERM or Ctrl-C, running tasks finish; the second ends the worker at "
        "once. After SIGTSTP it takes no more tasks until it is stopped; SIGTTIN shows the stacks of all threads. "
        "Exit codes: 0 stopped as asked, or a limit is reached; 1 stopped with unfinished tasks (they are given "
        "back), or ended with an error; 2 wrong usage, or Redis does not answer at the start."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_backend(parser)
        parser.add_argument(
            "-q",
            "--queue",
            action="append",
            metavar="NAME[=WEIGHT]",
            help="A queue to serve; repeat it for more, or high,mail, or '*' for all (the default). The order is the "
            "priority, unless each has a weight: then each gets its share of the started tasks.",
        )
        parser.add_argument("--round-robin", action="store_true", help="Serve the queues in turn.")
        parser.add_argument(
            "-c", "--concurrency", type=natural, default=4, help="Run this many tasks at a time (default: 4)."
        )
        add_processes(parser)
        parser.add_argument("--burst", action="store_true", help="Stop when no task is ready.")
        parser.add_argument("--max-tasks", type=natural, metavar="N", help="Exit with code 0 after N tasks.")
        add_limits(parser)
        add_shutdown_timeout(parser)
        add_running(parser)
        add_reload(parser, " Not with --burst.")

    def handle(self, *args: Any, **options: Any) -> None:
        backend = find_backend(options["backend"])
        choice = choose(options["queue"] or [ALL], backend, round_robin=options["round_robin"])
        served = ", ".join(choice.queues) if choice else "all queues"
        limits = find_limits(options)
        if options["processes"] > 1 and options["child"] is None:
            numbers = range(1, options["processes"] + 1)
            run_many(
                (Program(f"worker {each}", [*command_line(), "--child", str(each)]) for each in numbers),
                f"{options['processes']} processes for {served}",
                on_end="leave" if options["burst"] else "replace",
                shutdown_timeout=options["shutdown_timeout"],
                verbosity=options["verbosity"],
            )
        worker = TaskWorker(
            backend,
            choice or QueueChoice([], round_robin=True),
            all_queues=choice is None,
            max_tasks=limits.max_tasks,
            **{name: options[name] for name in ("concurrency", "burst", "shutdown_timeout")},
        )
        worker.limits = limits
        # Workers that start together begin with different queues.
        worker.consumer.turn = random.randrange(1_000_000)
        how = Run.of({**options, "reload": options["reload"] and not options["burst"]})
        run(worker, f"Worker for {served}", how)


def choose(given: list[str], backend: RedisBackend, *, round_robin: bool) -> QueueChoice | None:
    """Return the choice of queues that the options make; None for all queues. Raises CommandError."""
    given = [each for item in given for each in _parts(item, backend.queues)]
    if ALL in given:
        return None
    if any(item.rpartition("=")[0] == ALL for item in given):
        raise WrongUsage(
            f"--queue: {ALL!r} stands for all queues, each in turn, and has no weight. Use it alone, or name them."
        )
    weights: dict[str, int] = {}
    for item in given:
        name, equals, weight = item.rpartition("=")
        if equals and (not weight.isdecimal() or int(weight) < 1):
            raise WrongUsage(f"--queue {item}: the weight must be a whole number, 1 or more.")
        weights[_checked(name if equals else item)] = int(weight) if equals else 0
    unknown = [name for name in weights if backend.queues and name not in backend.queues]
    if unknown:
        known = ", ".join(sorted(backend.queues))
        raise WrongUsage(f"--queue {unknown[0]}: TASKS[{backend.alias!r}] has only the queues {known}.")
    if any(weights.values()) and not all(weights.values()):
        raise WrongUsage("--queue: give every queue a weight, or none.")
    return QueueChoice(list(weights), weights if any(weights.values()) else {}, round_robin)


def _parts(item: str, known: set[str]) -> list[str]:
    """Return what one --queue names: a queue, several with commas, or NAME,WEIGHT, as Sidekiq has it."""
    name, _comma, weight = item.partition(",")
    if weight.isdecimal() and not name.isdecimal() and not {item, weight} & known:
        return [f"{name}={weight}"]
    return [item] if item in known else [each.strip() for each in item.split(",")]


def _checked(name: str) -> str:
    try:
        return check_queue(name)
    except InvalidName as error:
        raise WrongUsage(f"--queue: {error}") from None
