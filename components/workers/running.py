"""The parts that commands for workers share: logging, the banner, one process or several, restarts, exit codes."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

from django.core.management.base import CommandError

from components.conf import conf
from components.embedded import EmbeddedServer, is_running, require_running
from components.exceptions import (
    RedisAlreadyRunning,
    RedisNotFound,
    RedisNotStarted,
    RedisRefused,
    RedisUnavailable,
)
from components.kit.release import check_format
from components.servers import inspect_server
from components.workers.loop import STUCK, UNHEALTHY, Loop, Pulse
from components.workers.options import WrongUsage
from components.workers.processes import MARGIN, Processes, Program
from components.workers.reexec import flush, restart, wait_until_loadable, watch
from components.workers.signals import release

logger = logging.getLogger(__name__)

UNREACHABLE = 2  # exit code: Redis did not answer at the start


@dataclass(frozen=True, kw_only=True)
class Run:
    """How to run a worker."""

    verbosity: int = 1
    #: Restart whenever code changes.
    reload: bool = False
    #: How many seconds running tasks have to finish.
    shutdown_timeout: float = 25.0
    heartbeat_file: Path | None = None
    #: Run as one of several processes, with this lifeline to their parent.
    child: int | None = None
    lifeline: int | None = None
    #: Be quiet from the beginning.
    quieted: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return what the options of a command say about it."""
        return cls(**{each.name: options[each.name] for each in fields(cls) if each.name in options})


def run(worker: Loop, what: str, how: Run) -> NoReturn:
    """
    Run *worker* to its end and exit with its code, or replace this process.

    Outside of the main thread the process belongs to other code: signals are ignored, changed code is not loaded, and
    only this thread ends, with SystemExit.
    """
    log(how.verbosity)
    is_alone = worker.ends_process = _is_main_thread()
    pulse = worker.pulse = _pulse(how)
    if how.lifeline is not None:
        held = (worker, how.lifeline, how.shutdown_timeout + MARGIN)
        threading.Thread(target=_hold_lifeline, args=held, name="lifeline", daemon=True).start()
    if how.quieted:
        worker.quiet()
    changed = threading.Event()
    if how.reload and is_alone:
        threading.Thread(target=watch, args=(worker, changed), name="reloader", daemon=True).start()
    name = f"{what} {worker.id}"
    code = _guarded(name, worker.run, warns=how.lifeline is None)
    if not worker.is_dismissed and is_alone:
        if code == STUCK:
            logger.warning("A task is stuck in a thread; restarting to get rid of it.")
            restart(quiet=worker.is_quiet, last=worker.part)
        if changed.is_set() and wait_until_loadable():
            logger.info("Code has changed; restarting.")
            restart(quiet=worker.is_quiet, last=worker.part)
    release()
    if pulse and not code:
        pulse.path.unlink(missing_ok=True)
    _exit(UNHEALTHY if code == STUCK else code, last=worker.part)


def run_many(
    programs: Iterable[Program],
    what: str,
    *,
    shutdown_timeout: float,
    verbosity: int,
    on_end: Literal["replace", "leave", "stop"] = "replace",
    labels: bool = False,
    embedded: bool = False,
) -> NoReturn:
    """
    Run *programs* to their end (processes.py), and exit with the worst code. With *embedded*, run the embedded server
    that the settings name as long, unless it is running already.

    Raises CommandError outside of the main thread, because only the main thread receives signals.
    """
    if not _is_main_thread():
        raise WrongUsage("Several processes can only be run from the main thread. Run the command by itself.")
    log(verbosity)
    processes = Processes([*programs], patience=shutdown_timeout + MARGIN, on_end=on_end, labels=labels)
    _exit(_guarded(what, processes.run, server=_embedded_server() if embedded else None))


@contextmanager
def _embedded_server() -> Iterator[None]:
    folder = conf().embedded
    if folder is None or is_running(folder):
        yield
    else:
        with EmbeddedServer(folder):
            yield


def _pulse(how: Run) -> Pulse | None:
    if how.heartbeat_file is None:
        return None
    name = str(how.heartbeat_file)
    pulse = Pulse(Path(name if how.child is None else f"{name}.{how.child}"))
    try:
        pulse.path.touch()
    except OSError as error:
        raise WrongUsage(f"--heartbeat-file: {error}") from None
    return pulse


def unreachable(error: RedisUnavailable) -> str:
    """Return the message of a command that could not use Redis: what happened, and what to check."""
    said, alias = str(error).rstrip("."), conf().cache
    if isinstance(error, RedisRefused):
        return f"{said}. CACHES[{alias!r}] names this server."
    return f"{said}. Is it running? CACHES[{alias!r}] says where it should be."


@contextmanager
def command_errors(*wrong: type[Exception], code: int = 1) -> Iterator[None]:
    """Turn an outage, and the errors *wrong*, which end with *code*, into a CommandError."""
    try:
        yield
    except RedisUnavailable as error:
        raise CommandError(unreachable(error), returncode=UNREACHABLE) from None
    except wrong as error:
        raise CommandError(str(error), returncode=code) from None


def _guarded(
    name: str,
    body: Callable[[], int],
    *,
    warns: bool = True,
    server: AbstractContextManager[None] | None = None,
) -> int:
    """Log what runs on which server, run it while *server* is entered, and turn errors into exit codes."""
    try:
        with server or nullcontext():
            if folder := conf().embedded:
                require_running(folder)
            found = inspect_server()
            check_format()
            logger.info(
                "%s: %s. Press Ctrl-C to stop after the running tasks, and again to stop at once.",
                name,
                found,
            )
            for warning in found.warnings if warns else ():
                logger.warning("%s", warning)
            return body()
    except (RedisNotFound, RedisNotStarted, RedisAlreadyRunning) as error:
        logger.error("%s", error)
        return UNREACHABLE
    except RedisUnavailable as error:
        logger.error("%s", unreachable(error))
        return UNREACHABLE
    except Exception:
        logger.exception(
            "The worker ended with an error. Other workers take over its tasks when their leases end."
        )
        return UNHEALTHY


def _exit(code: int, last: Callable[[], None] | None = None) -> NoReturn:
    """
    End the process with *code*, even if threads are stuck in tasks. *last* is called as late as possible.

    Outside of the main thread, end only this thread, with SystemExit.
    """
    if code and _is_main_thread():
        flush(last)
        os._exit(code)
    sys.exit(code)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def log(verbosity: int) -> None:
    """Show the app's log on stderr if the project has not configured logging for it."""
    app = logging.getLogger("components")
    if app.level == logging.NOTSET or verbosity != 1:
        app.setLevel([logging.ERROR, logging.INFO, logging.INFO, logging.DEBUG][verbosity])
    if not app.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        app.addHandler(handler)


def _hold_lifeline(worker: Loop, descriptor: int, patience: float) -> None:
    """Stop *worker* when the pipe is closed, and end the process if stopping takes longer than *patience*."""
    while os.read(descriptor, 1):
        pass
    worker.dismiss()
    if not worker.ended.wait(patience):
        logger.error("The worker did not stop within %g s; its process is ended now.", patience)
        os._exit(UNHEALTHY)
