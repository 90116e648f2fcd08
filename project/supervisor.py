"""
Run the site until someone stops it. `manage.py runall`, which runs its processes and replaces those that end, has a
session of its own: Ctrl-C reaches only this process, which stops runall, which stops the others.

If this process is killed, a Watcher does the same. The embedded Redis belongs to this process. If it ends, it is
started again after a pause, which shows how the site works without Redis.
"""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from django.conf import settings

from components.embedded import EmbeddedServer, Watcher
from components.exceptions import RedisUnavailable
from components.services.queues import TaskQueue

_LOOK = 0.2  # seconds between two checks of the processes

#: The number of processes of the tour's workers.
CREW = 2
#: What runs beside the worker, the poller and the daemon of cached rows. The caller has checked the site.
_ALSO = {
    "web": "{python} -m uvicorn project.asgi:application --host 127.0.0.1 --port {port} --lifespan off "
    "--no-access-log --log-level warning --timeout-graceful-shutdown 3",
    "game": "{python} -m project.players.gameserver var/logs",
    "crew": f"runworker --skip-checks --no-reload --shutdown-timeout 3 -q tour -c 4 --processes {CREW}",
    "townsfolk": "bustle --skip-checks {port}",
    "copier": "copylogs --skip-checks --follow --no-progress var/logs",
    "counter": "aggregatelogs --skip-checks",
    "tally": "aggregatelogs --skip-checks --job tour",
}
#: The processes of the game's log, which write, copy and count it.
LOG = ("game", "copier", "counter")
#: The workers of the tour's buttons, one of which may be killed, what counts the lines that a button writes, and
#: people who use the site meanwhile.
TOUR = ("crew", "tally", "townsfolk")


class RunallEnded(Exception):
    """What runs the processes of the site ended without being asked to."""


class Supervisor:
    """The processes of the site on *port*, except those in *without*. *redis* is an embedded server or None."""

    def __init__(
        self,
        port: int,
        redis: EmbeddedServer | None,
        *,
        redis_pause: float,
        say: Callable[[str], None],
        without: Collection[str] = (),
    ) -> None:
        self._port, self._without = port, without
        self._redis = redis
        self._redis_pause = redis_pause
        self._redis_returns_at: float | None = None
        self._say = say

    def run(self, ready: Callable[[], None]) -> None:
        """
        Run the site, call *ready* when it answers and its workers and poller are running, and go on until
        KeyboardInterrupt.

        At its end no process is left. Raises RunallEnded, or the error of EmbeddedServer.start() if Redis cannot be
        started again.
        """
        with self._processes() as runall:
            began = datetime.now(UTC)
            wanted = 1 if "crew" in self._without else 1 + CREW
            while runall.poll() is None and not (
                is_open(self._port) and are_at_work(since=began, workers=wanted)
            ):
                time.sleep(_LOOK)
            if runall.poll() is None:
                ready()
            while runall.poll() is None:
                self._look_after_redis()
                time.sleep(_LOOK)
        raise RunallEnded

    @contextmanager
    def _processes(self) -> Iterator[subprocess.Popen[bytes]]:
        python = shlex.quote(sys.executable)
        also = [
            f"--also={name}={command.format(python=python, port=self._port)}"
            for name, command in _ALSO.items()
            if name not in self._without
        ]
        options = ["--skip-checks", "--no-reload", "--shutdown-timeout", "3"]
        runall = subprocess.Popen(
            [sys.executable, "manage.py", "runall", *options, *also],
            cwd=settings.BASE_DIR,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        watcher = Watcher(runall.pid)
        try:
            yield runall
        finally:
            watcher.close()
            runall.terminate()
            runall.wait()

    def _look_after_redis(self) -> None:
        if self._redis is None or not self._redis.has_ended():
            return
        if self._redis_returns_at is None:
            self._redis_returns_at = time.monotonic() + self._redis_pause
            self._say(f"Redis has ended. It will be started again in {self._redis_pause:g} seconds.")
        elif time.monotonic() >= self._redis_returns_at:
            self._redis.stop()
            self._redis.start()
            self._redis_returns_at = None
            self._say("Redis is back, with all its data.")


def are_at_work(*, since: datetime, workers: int) -> bool:
    """Return True if that many workers, and a poller, have started and have reported that to Redis."""
    try:
        begun = Counter(info.kind for info in TaskQueue().workers() if info.started_at >= since)
    except RedisUnavailable:
        return False
    return begun["worker"] >= workers and begun["poller"] >= 1


def is_open(port: int) -> bool:
    """Return True if something answers at this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_free(port: int) -> bool:
    """Return True if this port of 127.0.0.1 is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return not is_open(port)
