"""
manage.py of the examples: python -m tests.docs.shop.manage COMMAND. SHOP_URL and SHOP_FOLDER say where its data are.

What would run for ever is asked to stop as soon as it listens for that.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from django.core.management import execute_from_command_line

from tests.docs.shop.run import configure
from tests.support.waiting import eventually

DAEMONS = {"runworker", "pollqueue", "cacherows", "aggregatelogs", "runall"}


def stop_at_once(arguments: list[str]) -> int:
    """Start the command, ask it to stop, and return its exit code."""
    process = subprocess.Popen([sys.executable, "-m", "tests.docs.shop.manage", "--now", *arguments])
    eventually(lambda: process.poll() is not None or listens(process.pid), within=60)
    process.send_signal(signal.SIGTERM)
    return process.wait()


def listens(process: int) -> bool:
    """Return whether the process has a handler of its own for SIGTERM."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    caught = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def execute(arguments: list[str]) -> None:
    configure(os.environ["SHOP_URL"], Path(os.environ["SHOP_FOLDER"]))
    from components.services.autocomplete.models import ModelBooks
    from tests.docs.shop.models import Membership

    ModelBooks(Membership, "player__name", by="guild", name="guild:{}", id="player")
    try:
        execute_from_command_line(["manage.py", *arguments])
    except SystemExit:
        if arguments[0] != "doctor":  # whose exit codes are findings
            raise


if __name__ == "__main__":
    given = sys.argv[1:]
    is_daemon = "--follow" in given or (given[0] in DAEMONS and not {"--burst", "--drain"} & {*given})
    if is_daemon and given[0] != "--now":
        sys.exit(stop_at_once(given))
    execute(given[1:] if given[0] == "--now" else given)
