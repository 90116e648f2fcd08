"""
The cast: players of all services, forked from one process that has loaded Django. Whoever is killed is replaced.

    python -m tests.chaos.cast FOLDER        # with REDIS_URL, PROXY_URL, CHAOS_FOLDER and DATABASE_URL

There is a file FOLDER/<role>.<pid>.pid for each player. When FOLDER/over appears, players come to an end; daemons go
on until all has settled. Then FOLDER/end.json tells the verdict on each part.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random
from types import ModuleType

import django

from tests.chaos.players import Player, Role, read_notes
from tests.support.waiting import eventually

PARTS = ("queues", "locks", "semaphores", "chat", "counters", "rows", "logs")
#: Seconds until a reply that was lost silently is missed.
_SOCKET_TIMEOUT = 1.0
#: 2: Redis was away when a command began.
_MAY_BE = (0, -signal.SIGKILL, 2)


class Cast:
    """The processes of the players."""

    def __init__(self, folder: Path, roles: dict[str, Role]) -> None:
        self._folder, self._roles = folder, roles
        self._there: dict[int, tuple[str, int]] = {}
        self._is_ending, self._parent = False, os.getppid()

    def start(self, role: str, number: int) -> None:
        """Let somebody play that role; every second one finds Redis behind the proxy."""
        player = Player(self._folder, number, Random())
        url = os.environ["PROXY_URL" if number % 2 else "REDIS_URL"]
        pid = fork(lambda: self._roles[role].play(player), url)
        self._there[pid] = role, number
        (self._folder / f"{role}.{pid}.pid").touch()

    def start_all(self) -> None:
        for role, what in self._roles.items():
            for number in range(what.count):
                self.start(role, number)

    def watch(self, until: Callable[[], bool]) -> None:
        """Replace those who were killed, until that is so. End all if one ends wrongly, or the test is gone."""
        while not until():
            if os.getppid() != self._parent:
                self.tell_all(signal.SIGKILL)
                sys.exit("The test that started this cast is gone.")
            pid, status = os.waitpid(-1, os.WNOHANG) if self._there else (0, 0)
            if not pid:
                time.sleep(0.01)
                continue
            if pid not in self._there:  # who was to settle
                continue
            role, number = self._there.pop(pid)
            (self._folder / f"{role}.{pid}.pid").unlink()
            code = os.waitstatus_to_exitcode(status)
            is_killed_early = self._is_ending and code == -signal.SIGTERM  # before it had a handler
            if code not in _MAY_BE and not is_killed_early:
                self.tell_all(signal.SIGKILL)
                sys.exit(f"A {role} ended with {code}.")
            if code and not self._is_ending:
                self.start(role, number)

    def is_left_alone(self) -> bool:
        return all(self._roles[role].is_daemon for role, _number in self._there.values())

    def is_empty(self) -> bool:
        return not self._there

    def tell_all(self, number: signal.Signals) -> None:
        """Send a signal to all, and replace none from now on."""
        self._is_ending = True
        for pid in self._there:
            os.kill(pid, number)


def fork(act: Callable[[], object], url: str) -> int:
    """Do that in a new process, which finds Redis at *url*, and return its id."""
    from components.testing import redis_at

    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 1
    try:
        with redis_at(url, SOCKET_TIMEOUT=_SOCKET_TIMEOUT):
            act()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # noqa: BLE001  (whatever it is: it is the end of this process)
        code = getattr(error, "returncode", 1)
        if code not in _MAY_BE:
            traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def do(act: Callable[[], object]) -> None:
    """Do that in a process of its own, so that this one has no connection and no thread when it forks players."""
    _pid, status = os.waitpid(fork(act, os.environ["REDIS_URL"]), 0)
    if status:
        sys.exit(f"{act} failed.")


def settle(folder: Path, parts: dict[str, ModuleType]) -> None:
    """Wait until each part has nothing left to do, and say so with FOLDER/settled."""
    for name, part in parts.items():
        if hasattr(part, "is_settled") and not eventually(part.is_settled, within=120, pause=0.1):
            sys.stdout.write(f"{name} has not settled.\n")
    (folder / "settled").touch()


def judge(folder: Path, parts: dict[str, ModuleType]) -> None:
    """Hold what is in Redis and in the database against the ledger."""
    notes = read_notes(folder)
    verdicts = {name: [str(each) for each in part.judge(notes)][:20] for name, part in parts.items()}
    figures = {name: part.figures(notes) for name, part in parts.items()}
    (folder / "end.json").write_text(json.dumps({"verdicts": verdicts, "figures": figures}))


def main(folder: Path) -> None:
    parts = {name: import_module(f"tests.chaos.parts.{name}") for name in PARTS}
    cast = Cast(folder, {role: what for part in parts.values() for role, what in part.ROLES.items()})
    for part in parts.values():
        if hasattr(part, "prepare"):
            do(lambda part=part: part.prepare(folder))
    cast.start_all()
    cast.watch((folder / "over").exists)
    cast.watch(cast.is_left_alone)
    fork(lambda: settle(folder, parts), os.environ["REDIS_URL"])
    cast.watch((folder / "settled").exists)
    cast.tell_all(signal.SIGTERM)
    cast.watch(cast.is_empty)
    do(lambda: judge(folder, parts))


if __name__ == "__main__":
    django.setup()
    main(Path(sys.argv[1]))
