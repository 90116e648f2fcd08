"""
Sharers: processes that share a semaphore, each with a wall clock of its own, and write down what they hold.

    python -m tests.chaos.sharers FOLDER share|queue COUNT     # with the environment of a worker

"share" takes permits and gives them back until the file FOLDER/stop is there; one that is killed is replaced.
"queue" waits for the file FOLDER/go-NUMBER, and takes one permit. The first process only forks, since that takes
no time. PROXY_URL is where each second process finds Redis, if it is set. A line is

    <kind> <instant> <starved> <permit> <until when it is surely held>

Instants are by components.kit.leases.clock(); <starved> are seconds, see starvation.py. A line is of one of the
kinds: w it waits, + it has a permit, r has refreshed it, - is about to give it back, u Redis was away, l the permit
was lost, f nobody left in time.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from components.exceptions import PermitLost, RedisUnavailable, SemaphoreFull
from components.kit.leases import clock
from components.services.semaphores import Permit, Semaphore
from components.testing import redis_at
from tests.chaos.starvation import starved

NAME, LIMIT, LEASE = "shared", 5, 0.8
_SKEWS = (0.0, 3600.0, -3600.0)  # seconds that a process's wall clock is ahead
_SOCKET_TIMEOUT = 1.0  # seconds: a reply that is lost silently is missed so soon
_HOLDS = 0.02  # seconds at most, but now and then for longer than a lease, which is refreshed
_POLL = 0.005


class Sharer:
    """One process, after its fork."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number
        self._random = random.Random(f"{number} {os.getpid()}")
        self._log = os.open(folder / f"{os.getpid()}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._semaphore = Semaphore(NAME, limit=LIMIT, lease=LEASE)
        self._parent = os.getppid()

    def share(self) -> None:
        while not (self._folder / "stop").exists() and os.getppid() == self._parent:
            try:
                self._hold_once()
            except RedisUnavailable:
                self._note("u")
                time.sleep(0.05)
            except PermitLost:
                self._note("l")
            except SemaphoreFull:
                self._note("f")

    def queue(self) -> None:
        while not (self._folder / f"go-{self._number}").exists():
            if os.getppid() != self._parent:
                return
            time.sleep(_POLL)
        self._note("w")
        permit = self._semaphore.acquire()
        self._note("+", permit)
        permit.release()

    def _hold_once(self) -> None:
        self._note("w")
        permit = self._semaphore.acquire(wait=self._random.choice([None, None, 0.5]))
        self._note("+", permit)
        if self._random.random() < 0.03:
            for _ in range(3):
                time.sleep(LEASE * 0.4)
                permit.refresh()
                self._note("r", permit)
        else:
            time.sleep(self._random.uniform(0, _HOLDS))
        self._note("-", permit)
        permit.release()

    def _note(self, kind: str, permit: Permit | None = None) -> None:
        of_permit = f"{permit.id} {permit.valid_until:.6f}" if permit else "none 0"
        os.write(self._log, f"{kind} {clock():.6f} {starved():.6f} {of_permit}\n".encode())


def _become(folder: Path, act: str, number: int) -> None:
    """What the child of a fork does; it never returns."""
    skew, url = _SKEWS[number % len(_SKEWS)], os.environ["REDIS_URL"]
    if number % 2 and "PROXY_URL" in os.environ:
        url = os.environ["PROXY_URL"]
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + skew
    time.time_ns = lambda: now_ns() + int(skew * 1e9)
    try:
        with redis_at(url, SOCKET_TIMEOUT=_SOCKET_TIMEOUT):
            getattr(Sharer(folder, number), act)()
    except BaseException:  # noqa: BLE001  (it must not go on as its parent)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _fork(child: Callable[[], None]) -> int:
    pid = os.fork()
    if not pid:
        child()
    return pid


def main(folder: Path, act: str, count: int) -> int:
    numbers = {}

    def start(number: int) -> None:
        numbers[_fork(lambda: _become(folder, act, number))] = number

    for number in range(count):
        start(number)
    failed = 0
    while numbers:
        pid, status = os.wait()
        number, code = numbers.pop(pid), os.waitstatus_to_exitcode(status)
        failed |= code not in (0, -signal.SIGKILL)
        if code == -signal.SIGKILL and act == "share" and not (folder / "stop").exists():
            start(number + count if number < count else number - count)  # by another clock
    return failed


if __name__ == "__main__":
    import django

    django.setup()
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
