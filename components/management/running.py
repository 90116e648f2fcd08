"""What the commands that run workers share: options, logging, the banner, reloading, exit codes."""

from __future__ import annotations

import logging
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError

from django.core.management.base import CommandError

from components.backends.tasks import RedisBackend
from components.compat import task_backends
from components.conf import conf
from components.embedded import require_running
from components.exceptions import RedisNotStarted, RedisUnavailable
from components.management.reloading import Reloader
from components.services.servers import inspect_server
from components.workers.base import UNHEALTHY, Worker

logger = logging.getLogger(__name__)

UNREACHABLE = 2  # exit code: Redis did not answer at the start


def natural(text: str) -> int:
    """An argparse type: a whole number above zero."""
    if not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def seconds(text: str) -> float:
    """An argparse type: a number of seconds, not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def add_backend(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--backend", default="default", metavar="ALIAS", help="The alias in TASKS (default: default)."
    )


def find_backend(alias: str) -> RedisBackend:
    """The RedisBackend behind *alias*. Raises CommandError."""
    if alias not in task_backends.settings:
        raise CommandError(
            f"--backend {alias}: settings.TASKS has only {', '.join(task_backends.settings)}.", returncode=2
        )
    backend = task_backends[alias]
    if not isinstance(backend, RedisBackend):
        raise CommandError(f"--backend {alias}: TASKS[{alias!r}] is not a RedisBackend.", returncode=2)
    return backend


def run(worker: Worker, what: str, *, reload: bool, verbosity: int) -> None:
    """Run *worker* to its end and exit with its code; with *reload*, anew whenever code changes."""
    _log(verbosity)
    reloader = Reloader(worker)
    if reload:
        reloader.start()
    code = _run(worker, what)
    if reloader.is_due:
        logger.info("Code has changed; starting anew.")
        _flush()
        reloader.restart()
    _exit(code)


def _run(worker: Worker, what: str) -> int:
    try:
        if folder := conf().embedded:
            require_running(folder)
        server = inspect_server()
        version = f"Redis {server.version} ({server.mode})" if server.version else "Redis"
        logger.info(
            "%s %s: %s. Ctrl-C stops after running tasks, a second one at once.",
            what,
            worker.consumer.id,
            version,
        )
        for warning in server.warnings:
            logger.warning("%s", warning)
        return worker.run()
    except RedisNotStarted as error:
        logger.error("%s", error)
        return UNREACHABLE
    except RedisUnavailable as error:
        logger.error("%s Is it running? CACHES[%r] says where it should be.", error, conf().cache)
        return UNREACHABLE
    except Exception:
        logger.exception(
            "The worker ended by an error; what it had claimed is taken over when its lease ends."
        )
        return UNHEALTHY


def _exit(code: int) -> None:
    """End the process with *code*, although threads may be stuck in tasks."""
    if code:
        _flush()
        os._exit(code)
    sys.exit(code)


def _flush() -> None:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()


def _log(verbosity: int) -> None:
    """Make the app's log visible where the project has not set one up."""
    app = logging.getLogger("components")
    if app.level == logging.NOTSET or verbosity != 1:
        app.setLevel([logging.ERROR, logging.INFO, logging.INFO, logging.DEBUG][verbosity])
    if not app.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        app.addHandler(handler)
