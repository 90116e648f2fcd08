"""The command-line option that names a RedisBackend."""

from argparse import ArgumentParser

from components.kit.compat import task_backends
from components.services.queues.backend import RedisBackend
from components.workers.options import WrongUsage


def add_backend(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--backend", default="default", metavar="ALIAS", help="The alias in TASKS (default: default)."
    )


def find_backend(alias: str) -> RedisBackend:
    """Return the RedisBackend behind *alias*. Raises CommandError."""
    if alias not in task_backends.settings:
        raise WrongUsage(f"--backend {alias}: settings.TASKS has only {', '.join(task_backends.settings)}.")
    backend = task_backends[alias]
    if not isinstance(backend, RedisBackend):
        raise WrongUsage(f"--backend {alias}: TASKS[{alias!r}] is not a RedisBackend.")
    return backend
