"""
Writers, daemons, readers and invalidations at random on a real PostgreSQL, while each of them is killed and stopped,
queries are slow and Redis is killed; then all that was read is held against what was committed.

The plan, and how to run it longer, is in stocks/plan.py; what is promised, in stocks/verdict.py.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from components.embedded import EmbeddedServer
from tests.chaos.stocks import plan
from tests.chaos.stocks.verdict import Verdict
from tests.commands.processes import Command
from tests.support.postgres import PostgresServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

PROGRAM = ("-m", "tests.chaos.stocks.crew")
_BEAT = 0.2  # seconds between two acts of trouble
_RESTART = 2.5  # seconds between two ends of Redis
#: What has to have been done.
TROUBLES = {f"{name} {role}" for role in plan.ROLES for name in ("SIGKILL", "SIGSTOP")} | {"Redis killed"}


def test_no_row_is_older_than_it_may_be_nor_than_it_was_before_whatever_happens(
    server: EmbeddedServer,
    postgres_server: PostgresServer,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    began, cpu = time.monotonic(), processor_seconds()
    folder = tmp_path / "stocks"
    folder.mkdir()
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.chaos.stocks.settings",
        "DATABASE_URL": postgres_server.new_database(),
        "CHAOS_ROWS_SEED": str(plan.SEED),
    }
    with Command(server.url, str(folder), program=PROGRAM, **environment) as command:
        everybody = sum(plan.ROLES.values())
        assert eventually(lambda: len(list(folder.glob("*.pid"))) == everybody), command.output
        trouble = Trouble(server, folder)
        trouble.make(command)
        (folder / "over").touch()
        assert eventually(command.has_ended, within=60), command.output
        assert command.exit_code() == 0, command.output

    verdict = Verdict(folder)
    figures = [*verdict.figures(), ("done to them", str(dict(trouble.done))), ("seed", str(plan.SEED))]
    figures.append(
        ("seconds, of processors", f"{time.monotonic() - began:.1f}, {processor_seconds() - cpu:.1f}")
    )
    record_property("figures", figures)
    assert not verdict.complaints, "\n".join(verdict.complaints[:20])
    assert verdict.replaced
    assert max(verdict.replaced) > 0, "no reader has seen a row that was replaced: nothing was tested"


class Trouble:
    """What is done to the processes, and to Redis."""

    def __init__(self, server: EmbeddedServer, folder: Path) -> None:
        self._server, self._folder = server, folder
        self._random = Random(plan.SEED)
        self._stopped: dict[int, float] = {}
        self._plan: list[tuple[signal.Signals, str]] = []
        self.done: Counter[str] = Counter()

    def make(self, command: Command) -> None:
        until = time.monotonic() + plan.SECONDS
        restart_at = time.monotonic() + _RESTART / 2
        while (time.monotonic() < until or not self.done.keys() >= TROUBLES) and not command.has_ended():
            self._strike(*self._next())
            if time.monotonic() >= restart_at:
                restart_at += _RESTART
                self._restart()
            time.sleep(_BEAT)
            self._let_go_on(time.monotonic())
        self._let_go_on(float("inf"))

    def _next(self) -> tuple[signal.Signals, str]:
        """Each comes once before any comes again."""
        if not self._plan:
            self._plan = [
                (number, role) for role in plan.ROLES for number in (signal.SIGKILL, signal.SIGSTOP)
            ]
            self._random.shuffle(self._plan)
        return self._plan.pop()

    def _strike(self, number: signal.Signals, role: str) -> None:
        pids = [int(path.suffixes[0][1:]) for path in self._folder.glob(f"{role}.*.pid")]
        if there := sorted(pid for pid in pids if pid not in self._stopped):
            pid = self._random.choice(there)
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                self.done[f"{number.name} {role}"] += 1
                if number == signal.SIGSTOP:
                    self._stopped[pid] = time.monotonic() + self._random.uniform(0.1, 2 * plan.LEASE)

    def _let_go_on(self, at: float) -> None:
        for pid in [pid for pid, until in self._stopped.items() if until <= at]:
            del self._stopped[pid]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _restart(self) -> None:
        self._server.kill()
        time.sleep(self._random.uniform(0, 0.3))
        self._server.start()
        self.done["Redis killed"] += 1


def processor_seconds() -> float:
    """Of this process and of those of its children that have ended."""
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)
