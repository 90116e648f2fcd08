"""
A private PostgreSQL for tests that ask a real one: on a unix socket, without TCP, gone with its folder.

PostgreSQL refuses to run as root; started by root (in a container, say) it runs as `nobody`.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg import sql

from components.embedded import Watcher
from tests.support.waiting import eventually


@dataclass(frozen=True)
class PostgresServer:
    """One that runs, with its socket in *folder*."""

    folder: Path

    def url(self, database: str = "postgres") -> str:
        """The DATABASE_URL of *database*; the one called "postgres" is there, and empty."""
        return f"postgres://market@/{self.folder}/{database}"

    def new_database(self) -> str:
        """The DATABASE_URL of one database more, which is empty."""
        name = f"database_{secrets.token_hex(8)}"
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(host=str(self.folder), user="market", dbname="postgres", autocommit=True)


@contextmanager
def postgres(programs: Path) -> Iterator[PostgresServer]:
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
        server = PostgresServer(Path(folder))
        with _running(programs / "postgres", data, server, who):
            yield server


@contextmanager
def _running(program: Path, data: Path, server: PostgresServer, who: dict[str, Any]) -> Iterator[None]:
    process = subprocess.Popen(
        [program, "-D", data, "-k", server.folder, "-c", "listen_addresses=", "-c", "fsync=off"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **who,
    )
    watcher = Watcher(process.pid)
    try:
        assert eventually(lambda: _answers(server) or process.poll() is not None), "PostgreSQL does not start"
        assert process.poll() is None, "PostgreSQL ended at once"
        yield
    finally:
        watcher.close()
        process.kill()
        process.wait()


def _answers(server: PostgresServer) -> bool:
    with suppress(psycopg.OperationalError):
        server.connect().close()
        return True
    return False
