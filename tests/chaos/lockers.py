"""
Processes that take a lock, write to the register under it, twice, and release it; what they saw is in their diaries.

`python -m tests.chaos.lockers URL FOLDER NAME TIMES FAIR` is one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from components.exceptions import LockLost, RedisUnavailable
from components.kit.leases import clock
from components.services.locks import Lock, lock
from components.testing import redis_at
from tests.chaos.register import Writer
from tests.chaos.starvation import starved
from tests.commands.processes import ROOT

TIMEOUT = 0.7  # seconds


@dataclass
class Acquisition:
    """What a process wrote down of one."""

    process: int
    number: int
    asked_at: float
    got_at: float
    fence: int
    #: Seconds in the life of the process until then; see starvation.py.
    starved: float
    released_at: float | None = None


@contextmanager
def locker(
    url: str, folder: Path, name: str, *, times: int = 1_000_000, fair: bool = False
) -> Iterator[Popen[bytes]]:
    """A process that does it so many times, or until it is killed."""
    arguments = [url, str(folder), name, str(times), "fair" if fair else ""]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    command = [sys.executable, "-m", "tests.chaos.lockers", *arguments]
    with Popen(command, cwd=ROOT, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()  # a stopped one too


def read(folder: Path) -> list[Acquisition]:
    """All acquisitions, in the order of their fences."""
    found = {}
    for file in folder.glob("*.diary"):
        for line in file.read_text().splitlines():
            what, number, *rest = json.loads(line)
            key = int(file.stem), number
            if what == "got":
                found[key] = Acquisition(*key, *rest)
            elif what == "released":
                found[key].released_at = rest[0]
    return sorted(found.values(), key=lambda each: each.fence)


class Locker:
    def __init__(self, folder: Path, name: str, *, fair: bool) -> None:
        self._diary = os.open(folder / f"{os.getpid()}.diary", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._register = Writer(str(folder / "register.sock"))
        self._lock = lock(name, timeout=TIMEOUT, fair=fair)
        self._number = 0

    def work(self) -> None:
        asked_at = clock()
        while not self._is_acquired():
            time.sleep(0.02)
            asked_at = clock()
        self._number += 1
        held = self._lock
        self._note("got", asked_at, clock(), held.fence, starved())
        self._register.write(self._number, held.fence)
        time.sleep(0.002)
        self._register.write(self._number, held.fence, is_last=True)
        self._release(held)

    def _is_acquired(self) -> bool:
        try:
            return self._lock.acquire()
        except RedisUnavailable:
            return False

    def _release(self, held: Lock) -> None:
        while held.local.token:
            try:
                held.release()
                self._note("released", clock())
            except RedisUnavailable:
                time.sleep(0.02)
            except LockLost:
                return

    def _note(self, what: str, *facts: float) -> None:
        os.write(self._diary, f"{json.dumps([what, self._number, *facts])}\n".encode())


def main(url: str, folder: Path, name: str, times: int, *, fair: bool) -> None:
    with redis_at(url, SOCKET_TIMEOUT=2):
        one = Locker(folder, name, fair=fair)
        for _ in range(times):
            one.work()


if __name__ == "__main__":
    url, folder, name, times, fair = sys.argv[1:]
    main(url, Path(folder), name, int(times), fair=bool(fair))
