"""The table of names in a private PostgreSQL: filled, and asked by LIKE."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

from django.core.management import call_command
from django.db import connection

from benchmarks.completing import DATABASE
from components.services.autocomplete import fold

#: By code points, as ours is; the index for LIKE has the rows in this order.
_LIKE = "SELECT id, name FROM completing_person WHERE key LIKE %s ORDER BY key USING ~<~ LIMIT 10"


@contextmanager
def standing_database() -> Iterator[bool]:
    """A PostgreSQL beside, before Django is set up; whether there is one."""
    with ExitStack() as stack:
        if find_spec("psycopg") and find_spec("psutil"):
            from tests.support.postgres import find_programs, postgres

            if programs := find_programs():
                os.environ[DATABASE] = str(stack.enter_context(postgres(programs)).folder)
        yield DATABASE in os.environ


def version() -> str:
    """Of the server, for the conditions of a run."""
    if DATABASE not in os.environ:
        return "no PostgreSQL"
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return f"PostgreSQL {cursor.fetchone()[0].split()[0]}"


def fill(entries: Sequence[tuple[int, str]]) -> None:
    """Make the tables of all apps, that of names with all rows and both of its indexes."""
    call_command("migrate", run_syncdb=True, verbosity=0)
    with connection.cursor() as cursor:
        with cursor.copy("COPY completing_person (id, name, key) FROM STDIN") as copy:
            for number, name in entries:
                copy.write_row((number, name, fold(name)))
        cursor.execute("CREATE INDEX ON completing_person (key)")
        cursor.execute("CREATE INDEX ON completing_person (key text_pattern_ops)")
        cursor.execute("VACUUM ANALYZE completing_person")


def like(prefix: str) -> list[tuple[int, str]]:
    """Ten names that begin so, in Django's connection, without its ORM."""
    with connection.cursor() as cursor:
        cursor.execute(_LIKE, [fold(prefix) + "%"])
        return cursor.fetchall()
