"""
`python -m project.processes PORT [WITHOUT…]`: run the demo site's processes under honcho until one of them ends.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from honcho.manager import Manager
from honcho.printer import Printer

#: honcho kills processes five seconds after it has asked them to stop, so all of them must end before that. The
#: caller has run the system checks.
PROCESSES = {
    "web": "-m uvicorn project.asgi:application --host 127.0.0.1 --port {port} --lifespan off "
    "--no-access-log --log-level warning --timeout-graceful-shutdown 3",
    "worker": "manage.py runworker --skip-checks --queue '*' --no-reload --shutdown-timeout 3",
    "poller": "manage.py pollqueue --skip-checks",
    "rows": "manage.py cacherows --skip-checks",
    "game": "-m project.players.gameserver var/logs",
    "copier": "manage.py copylogs --skip-checks --follow --no-progress var/logs",
    "counter": "manage.py aggregatelogs --skip-checks",
}


class _Printer(Printer):  # type: ignore[misc]
    """
    A printer that ignores write errors if nobody reads any more, because the processes must be stopped in any case.
    """

    def write(self, message: Any) -> None:
        # RuntimeError is raised if a signal to stop interrupts a write, and honcho's handler writes a line, too.
        with suppress(OSError, RuntimeError):
            super().write(message)


#: The processes of the game's log, which write, copy and count it.
LOG = ("game", "copier", "counter")


def run(port: int, without: Collection[str] = ()) -> int:
    """
    Run the processes. Return the exit code of the first one that ended, or of a signal that this process received.
    """
    manager = Manager(_Printer(sys.stdout))
    for name, arguments in PROCESSES.items():
        if name in without:
            continue
        manager.add_process(name, f"exec {shlex.quote(sys.executable)} {arguments.format(port=port)}")
    manager.loop()
    return int(manager.returncode)


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), sys.argv[2:]))
