"""
Holders: processes that take one lock and write under it into a register, and write down what they did.

    python -m tests.chaos.holders FOLDER COUNT     # with the environment of a worker

Each takes the lock "shared" again and again, until the file FOLDER/stop is there; one that is killed is replaced. Odd
ones take it as a fair lock. The register is FOLDER/register.sqlite3: it accepts no older fence than its newest, and
remembers what it accepted in order. PROXY_URL is where each second process finds Redis. A line is

    <kind> <instant> <starved> <fence> <until when the lock is surely held>

Instants are by components.kit.leases.clock(); <starved> are seconds, see starvation.py. A line is of one of the
kinds: w it waits, + it holds the lock, a the register has accepted its write, x refused it, - it is about to release,
l the lock was lost, u Redis was away, f the lock was not free in time.
"""

from __future__ import annotations

import math
import os
import random
import signal
import sqlite3
import sys
import time
import traceback
from pathlib import Path

from components.exceptions import LockLost, RedisUnavailable
from components.kit.leases import clock
from components.services.locks import Lock, lock
from components.testing import redis_at
from tests.chaos.starvation import starved

NAME, TIMEOUT = "shared", 0.6
_SOCKET_TIMEOUT = 1.0  # seconds: a reply that is lost silently is missed so soon
_HOLDS = 0.02  # seconds at most
_BUSY = 20  # seconds that a write waits for another's


class Register:
    """What only the newest holder may write to."""

    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(
            folder / "register.sqlite3", timeout=_BUSY, isolation_level=None, check_same_thread=False
        )

    def prepare(self) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("CREATE TABLE newest (fence INTEGER)")
        self._database.execute("INSERT INTO newest VALUES (0)")
        self._database.execute("CREATE TABLE accepted (id INTEGER PRIMARY KEY, fence INTEGER)")

    def write(self, fence: int) -> bool:
        """Whether it is accepted."""
        self._database.execute("BEGIN IMMEDIATE")
        written = self._database.execute(
            "UPDATE newest SET fence = ? WHERE fence <= ?", (fence, fence)
        ).rowcount
        if written:
            self._database.execute("INSERT INTO accepted (fence) VALUES (?)", (fence,))
        self._database.execute("COMMIT")
        return bool(written)

    def accepted(self) -> list[int]:
        return [fence for (fence,) in self._database.execute("SELECT fence FROM accepted ORDER BY id")]


class Holder:
    """One process, after its fork."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._parent = folder, os.getppid()
        self._random = random.Random(f"{number} {os.getpid()}")
        self._log = os.open(folder / f"{os.getpid()}.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        self._register = Register(folder)
        self._is_fair = bool(number % 2)

    def work(self) -> None:
        while not (self._folder / "stop").exists() and os.getppid() == self._parent:
            try:
                self._hold_once(lock(NAME, timeout=TIMEOUT, fair=self._is_fair))
            except RedisUnavailable:
                self._note("u")
                time.sleep(0.05)
            except LockLost:
                self._note("l")

    def _hold_once(self, held: Lock) -> None:
        self._note("w")
        if not held.acquire(blocking_timeout=self._random.choice([None, None, 0.5])):
            self._note("f")
            return
        self._note("+", held)
        for _ in range(2):  # a holder may write more than once
            time.sleep(self._random.uniform(0, _HOLDS))
            self._note("a" if self._register.write(held.fence) else "x", held)
        self._note("-", held)
        held.release()

    def _note(self, kind: str, held: Lock | None = None) -> None:
        of_lock = f"{held.fence} {clock() + held.remaining:.6f}" if held else f"0 {-math.inf}"
        os.write(self._log, f"{kind} {clock():.6f} {starved():.6f} {of_lock}\n".encode())


def _become(folder: Path, number: int) -> None:
    """What the child of a fork does; it never returns."""
    url = os.environ["PROXY_URL" if number % 4 > 1 else "REDIS_URL"]
    try:
        with redis_at(url, SOCKET_TIMEOUT=_SOCKET_TIMEOUT):
            Holder(folder, number).work()
    except BaseException:  # noqa: BLE001  (it must not go on as its parent)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main(folder: Path, count: int) -> int:
    numbers: dict[int, int] = {}

    def start(number: int) -> None:
        if pid := os.fork():
            numbers[pid] = number
        else:
            _become(folder, number)

    for number in range(count):
        start(number)
    failed = 0
    while numbers:
        pid, status = os.wait()
        number, code = numbers.pop(pid), os.waitstatus_to_exitcode(status)
        failed |= code not in (0, -signal.SIGKILL)
        if code == -signal.SIGKILL and not (folder / "stop").exists():
            start(number)
    return failed


if __name__ == "__main__":
    import django

    django.setup()
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
