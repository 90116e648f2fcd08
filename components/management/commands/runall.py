"""Run the worker, the poller and the daemons of a small site under one parent."""

import shlex
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from typing import Any

from django.core.management import get_commands
from django.core.management.base import BaseCommand

from components.kit.compat import task_backends
from components.services.queues.backend import RedisBackend
from components.services.rows.models import cached_rows
from components.workers.options import (
    WrongUsage,
    add_heartbeat_file,
    add_reload,
    add_shutdown_timeout,
    natural,
)
from components.workers.processes import Program
from components.workers.reexec import command_line
from components.workers.running import run_many


class Command(BaseCommand):
    help = (
        "Runs what a small site needs beside its web server: a worker and a poller for each RedisBackend in TASKS, "
        "cacherows if models have cached rows, and the embedded server that COMPONENTS['EMBEDDED'] may name. All "
        "write to one log, each line with the name of its process. At the first SIGTERM or Ctrl-C all finish what "
        "they do; the second ends them at once. A process that ends unasked is started again, after a delay that "
        "grows to 30 s. Exit codes: those of runworker."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "-c",
            "--concurrency",
            type=natural,
            default=4,
            help="Tasks at a time, in each worker (default: 4).",
        )
        parser.add_argument(
            "--processes", type=natural, default=1, metavar="N", help="Workers for each backend (default: 1)."
        )
        parser.add_argument(
            "--also",
            action="append",
            default=[],
            type=_program,
            metavar="NAME=COMMAND",
            help="Run this as well: a management command or any other program, without a shell. SIGTERM stops it. "
            "Repeat it for more.",
        )
        parser.add_argument(
            "--no-restart",
            action="store_true",
            help="Stop all when one of them ends, and leave it to a service manager to start all again.",
        )
        add_shutdown_timeout(parser)
        add_heartbeat_file(parser)
        add_reload(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        programs = [*_workers(options), *options["also"]]
        names = [each.name for each in programs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise WrongUsage(f"--also {twice[0]}=…: another process has this name.")
        run_many(
            programs,
            ", ".join(names),
            shutdown_timeout=options["shutdown_timeout"],
            verbosity=options["verbosity"],
            on_end="stop" if options["no_restart"] else "replace",
            labels=True,
            embedded=True,
        )


def _workers(options: dict[str, Any]) -> Iterator[Program]:
    def program(name: str, command: str, *arguments: str) -> Program:
        common = ["--skip-checks", "--verbosity", str(options["verbosity"])]
        if options["pythonpath"]:
            common += ["--pythonpath", options["pythonpath"]]
        if path := options["heartbeat_file"]:
            common += ["--heartbeat-file", f"{path}.{name}"]
        return Program(name, [*_manage(command), *common, *arguments])

    for alias in task_backends.settings:
        if not isinstance(task_backends[alias], RedisBackend):
            continue
        which, backend = ("" if alias == "default" else f"-{alias}"), ["--backend", alias]
        for number in range(1, options["processes"] + 1):
            yield program(
                f"worker{which}" if options["processes"] == 1 else f"worker{which}-{number}",
                "runworker",
                *backend,
                *("--concurrency", str(options["concurrency"])),
                *("--shutdown-timeout", str(options["shutdown_timeout"])),
                "--reload" if options["reload"] else "--no-reload",
            )
        yield program(f"poller{which}", "pollqueue", *backend)
    if cached_rows():
        yield program("rows", "cacherows")


def _program(text: str) -> Program:
    """An argparse type: the name of a process, and its command line."""
    name, _, line = text.partition("=")
    command = shlex.split(line)
    if not name.isidentifier() or not command:
        raise ArgumentTypeError(
            f"{text!r} is not NAME=COMMAND, such as 'logs=aggregatelogs --format combined'"
        )
    if command[0] in get_commands():
        command = [*_manage(command[0]), *command[1:]]
    return Program(name, command, is_worker=False)


def _manage(command: str) -> list[str]:
    mine = command_line()
    return [*mine[: len(mine) - len(sys.argv[1:])], command]
