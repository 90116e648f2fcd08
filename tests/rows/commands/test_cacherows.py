"""`manage.py cacherows` as a process. Its database is its own, and has no tables: it lives on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.services.rows import RowReader
from components.testing import redis_at
from tests.commands.processes import Command
from tests.db.models import Token, Ware

SITE = {"APPS": "tests.db", "DATABASE": ":memory:"}


def test_it_lives_on_without_its_tables_until_it_is_told_to_stop(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    pulse = tmp_path / "pulse"
    with (
        redis_at(server.url),
        Command(server.url, "cacherows", "--heartbeat-file", str(pulse), **SITE) as daemon,
    ):
        Ware.cached.schedule(1, delay=0.01)
        assert daemon.says("the database does not answer: no such table: db_ware. Trying again in 0.5 s.")
        assert pulse.exists()
        Token.cached.schedule("a", delay=0.01)
        assert daemon.says("the database does not answer: no such table: db_token")
        daemon.signal(signal.SIGTERM)

        assert daemon.exit_code() == 0
        assert RowReader().failing() == 0
    assert "INFO Cached rows of 3 models" in daemon.output
    assert "Traceback" not in daemon.output
    assert not pulse.exists()


def test_it_says_so_if_redis_does_not_answer() -> None:
    with Command("redis://127.0.0.1:1", "cacherows", **SITE) as daemon:
        assert daemon.exit_code() == 2
    assert "Is it running?" in daemon.output


@pytest.mark.slow
@pytest.mark.parametrize("option", [["--batch", "0"], ["--lease", "0"], ["--lease", "x"]])
def test_wrong_options_are_refused(server: EmbeddedServer, option: list[str]) -> None:
    with Command(server.url, "cacherows", *option, **SITE) as daemon:
        assert daemon.exit_code() == 2
