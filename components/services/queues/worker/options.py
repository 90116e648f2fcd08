"""The command-line option that names a RedisBackend."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import CommandError

from components.kit.compat import task_backends
from components.services.queues.backend import RedisBackend


def add_backend(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--backend", default="default", metavar="ALIAS", help="The alias in TASKS (default: default)."
    )


def find_backend(alias: str) -> RedisBackend:
    """Return the RedisBackend behind *alias*. Raises CommandError."""
    if alias not in task_backends.settings:
        raise CommandError(
            f"--backend {alias}: settings.TASKS has only {', '.join(task_backends.settings)}.", returncode=2
        )
    backend = task_backends[alias]
    if not isinstance(backend, RedisBackend):
        raise CommandError(f"--backend {alias}: TASKS[{alias!r}] is not a RedisBackend.", returncode=2)
    return backend
