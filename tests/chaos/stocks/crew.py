"""
Processes that write, load and read stocks, forked from one that has loaded Django; who was killed is replaced.

    python -m tests.chaos.stocks.crew FOLDER        # with REDIS_URL and DATABASE_URL

It makes the tables, and a file FOLDER/role.pid for each process. FOLDER/over lets writers and readers end; then it
waits until what is cached is what the database has, and says in FOLDER/end.json how all stands.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any

import django

from tests.chaos.stocks import plan
from tests.support.waiting import eventually

_MAY_BE = {-signal.SIGKILL, 0, 2}  # 2: Redis was away when a daemon began


def prepare() -> None:
    """The tables and all rows, each on the schedule that shall be."""
    from django.db import connection, connections

    from tests.chaos.stocks.models import Change, Count, Stock

    with connection.schema_editor() as editor:
        for model in (Stock, Change, Count):
            editor.create_model(model)
    Count.objects.bulk_create(Count(row=row) for row in plan.ROWS)
    Stock.objects.bulk_create(Stock(pk=row, number=0) for row in plan.ROWS)
    for row, delay in plan.DELAYS.items():
        Stock.cached.schedule(row, delay)
    connections.close_all()


def work(folder: Path, role: str, seed: int) -> None:
    """What one process does until it is over."""
    from tests.chaos.stocks.actors import Reader, Writer, be_slow, run_daemon

    random = Random(seed)
    if role != "writer":
        be_slow(random)
    if role == "daemon":
        run_daemon()
        return
    actor = Writer(folder, random) if role == "writer" else Reader(folder, random)
    while not (folder / "over").exists():
        actor.act()
        time.sleep(random.uniform(0, plan.NAP))


class Crew:
    """Those that run."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._roles = folder, dict[int, str]()
        self._number, self._is_over = 0, False

    def fork(self, role: str) -> None:
        self._number += 1
        seed = plan.SEED * 1_000 + self._number
        pid = os.fork()
        if not pid:
            self._run(role, seed)
        self._roles[pid] = role
        (self._folder / f"{role}.{pid}.pid").touch()

    def _run(self, role: str, seed: int) -> None:
        code = 1
        try:
            work(self._folder, role, seed)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception as error:  # noqa: BLE001  (whatever it is: it is the end of a process)
            code = getattr(error, "returncode", 1)
            if code not in _MAY_BE:
                traceback.print_exc()
        finally:
            os._exit(code)

    def watch(self, *, but_for: str = "") -> None:
        """Until all have ended, but for those of one role."""
        while any(role != but_for for role in self._roles.values()):
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                self._note_end(pid, os.waitstatus_to_exitcode(status))
            else:
                time.sleep(0.01)

    def _note_end(self, pid: int, code: int) -> None:
        role = self._roles.pop(pid)
        (self._folder / f"{role}.{pid}.pid").unlink()
        if self._is_over and code == -signal.SIGTERM:  # it had only just begun
            return
        if code not in _MAY_BE:
            self.end()
            sys.exit(f"A {role} ended with {code}.")
        if code and not self._is_over:
            self.fork(role)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Let nobody go on, and replace none."""
        self._is_over = True
        for pid in self._roles:
            os.kill(pid, number)


def has_settled() -> bool:
    """Whether what is read is what is there, nobody claims anything, and no row is scheduled that is not there."""
    from components.kit.client import get_client
    from components.services.rows import RowReader
    from tests.chaos.stocks.models import Stock

    there = dict(Stock.objects.values_list("pk", "number"))
    read = {pk: row.number for pk, row in Stock.cached.get_many(plan.ROWS).items()}
    claims = list(get_client().scan_iter("*:rows:*:claim:*"))
    scheduled = {int(info.key) for info in RowReader().page(limit=1_000)}
    return there == read and not claims and scheduled <= there.keys() and not RowReader().failing()


def how_all_stands(is_settled: bool) -> dict[str, Any]:
    from components.services.rows import RowReader
    from tests.chaos.stocks.models import Change, Stock

    return {
        "is_settled": is_settled,
        "there": list(Stock.objects.values_list("pk", flat=True)),
        "scheduled": [int(info.key) for info in RowReader().page(limit=1_000)],
        "changes": list(Change.objects.values_list("attempt", "row", "number", "is_deletion")),
    }


def main(folder: Path) -> None:
    prepare()
    crew = Crew(folder)
    for role, number in plan.ROLES.items():
        for _ in range(number):
            crew.fork(role)
    crew.watch(but_for="daemon")
    # Those that were killed hold claims until their leases end, and a busy machine lets others wait for their turn.
    end = how_all_stands(eventually(has_settled, within=120))
    crew.end(signal.SIGTERM)
    crew.watch()
    (folder / "end.json").write_text(json.dumps(end))


if __name__ == "__main__":
    django.setup()
    main(Path(sys.argv[1]))
