"""
A private PostgreSQL for tests that ask a real one: on a unix socket, without TCP, gone with its folder.

PostgreSQL refuses to run as root; started by root (in a container, say) it runs as `nobody`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from components.watcher import Watcher
from tests.support.waiting import eventually

#: Where Debian and its kin keep the server's programs, which they do not put on PATH.
VERSIONED = Path("/usr/lib/postgresql")


def find_programs() -> Path | None:
    """The folder with initdb and postgres: of PATH, else of the newest version installed; None if none is."""
    on_path = [Path(found).parent for found in [shutil.which("postgres")] if found]
    versions = sorted(VERSIONED.glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True)
    candidates = [folder for folder in (*on_path, *versions) if (folder / "initdb").exists()]
    return next((folder for folder in candidates if (folder / "postgres").exists()), None)


@contextmanager
def postgres(programs: Path) -> Iterator[str]:
    """A server for as long as the block runs; yields the DATABASE_URL of its empty database."""
    who: dict[str, Any] = (
        {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    )
    with TemporaryDirectory(prefix="postgres-") as folder:
        if who:
            shutil.chown(folder, who["user"], who["group"])
        data = Path(folder) / "data"
        initdb = [programs / "initdb", "--pgdata", data, "--username=market", "--encoding=UTF8"]
        subprocess.run(
            [*initdb, "--auth=trust", "--no-locale", "--no-sync"], check=True, capture_output=True, **who
        )
        with _running(programs / "postgres", data, Path(folder), who):
            yield f"postgres://market@/{folder}/postgres"


@contextmanager
def _running(program: Path, data: Path, folder: Path, who: dict[str, Any]) -> Iterator[None]:
    server = subprocess.Popen(
        [program, "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **who,
    )
    watcher = Watcher(server.pid)
    try:
        assert eventually(lambda: _answers(folder) or server.poll() is not None), "PostgreSQL does not start"
        assert server.poll() is None, "PostgreSQL ended at once"
        yield
    finally:
        watcher.close()
        server.kill()
        server.wait()


def _answers(folder: Path) -> bool:
    with suppress(psycopg.OperationalError):
        psycopg.connect(host=str(folder), user="market", dbname="postgres").close()
        return True
    return False
