"""
Processes that copy and count logs, forked from one that has loaded Django; who was killed is replaced.

    python -m tests.chaos.visits.crew FOLDER        # with the environment of a worker

There is a file FOLDER/role.pid.pid for each process. FOLDER/copied says that the producers have done their work. When
FOLDER/over is there, too, all that count are told to end; what is left is counted by others, and what was given up is
sent again.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from random import Random

import django

from tests.chaos.visits import plan

#: Loaded once, before anybody is forked.
_NEEDED = (
    "components.services.queues.backend",
    "components.management.commands.aggregatelogs",
    "components.management.commands.copylogs",
    "components.services.logs.lines.kernels.naive",
    "components.services.logs.traffic.place_counter",
    "components.services.logs.worker.log_worker",
    "django_redis.cache",
    "tests.chaos.visits.actors",
    "tests.chaos.visits.events",
    "zstandard",
)
_MAY_BE = frozenset({-signal.SIGKILL, 0, 2})  # 2: Redis was away when it began


class Crew:
    """Those that run."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._roles = folder, dict[int, str]()
        self._number, self._is_over = 0, False

    def fork(self, role: str, *options: str) -> None:
        self._number += 1
        random = Random(plan.SEED * 1_000 + self._number)
        pid = os.fork()
        if not pid:
            self._run(role, random, *options)
        self._roles[pid] = role
        (self._folder / f"{role}.{pid}.pid").touch()

    def _run(self, role: str, random: Random, *options: str) -> None:
        from tests.chaos.visits.actors import act

        code = 1
        try:
            act(role, self._folder, random, *options)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception as error:  # noqa: BLE001  (whatever it is: it is the end of a process)
            code = getattr(error, "returncode", 1)
            if code not in _MAY_BE:
                traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)

    def watch(self, until: Callable[[], bool], may_be: frozenset[int] = _MAY_BE) -> None:
        """Replace those who end before their work is done."""
        while not until():
            pid, status = os.waitpid(-1, os.WNOHANG) if self._roles else (0, 0)
            if pid:
                self._note_end(pid, os.waitstatus_to_exitcode(status), may_be)
            else:
                time.sleep(0.01)

    def _note_end(self, pid: int, code: int, may_be: frozenset[int]) -> None:
        role = self._roles.pop(pid)
        (self._folder / f"{role}.{pid}.pid").unlink()
        is_early = code == 0 and role != "producer" and not self._is_over
        if code not in may_be or is_early:
            self.end(signal.SIGKILL)
            sys.exit(f"A {role} ended with {code}.")
        if code and not self._is_over:
            self.fork(role)

    def has_none(self, role: str) -> bool:
        return role not in self._roles.values()

    def has_none_left(self) -> bool:
        return not self._roles

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Let nobody go on, and replace none."""
        self._is_over = True
        for pid in self._roles:
            os.kill(pid, number)

    def drain(self) -> None:
        """Let all that is left be counted."""
        for role in ("worker", "counter"):
            self.fork(role, "--drain")
        self.watch(self.has_none_left, may_be=frozenset({0}))


def main(folder: Path) -> None:
    from tests.chaos.visits.actors import send_again

    crew = Crew(folder)
    for role, number in plan.ROLES.items():
        for _ in range(number):
            crew.fork(role)
    crew.watch(lambda: crew.has_none("producer"))
    (folder / "copied").touch()
    crew.watch((folder / "over").exists)
    crew.end()
    # Who had only just begun does not know yet what SIGTERM means here.
    crew.watch(crew.has_none_left, may_be=_MAY_BE | {-signal.SIGTERM})
    crew.drain()
    while again := send_again():
        sys.stdout.write(f"{again} chunks were given up, and sent again.\n")
        crew.drain()


if __name__ == "__main__":
    django.setup()
    for name in _NEEDED:
        import_module(name)
    main(Path(sys.argv[1]))
