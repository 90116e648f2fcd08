"""
The cast of all services plays while a monkey kills and stops players, loses replies and kills Redis; then each
service is held against the ledger of what the players did.

CHAOS_SECONDS (60) is how long things go wrong, CHAOS_SEED the number of an earlier run, to have its troubles again.
"""

import json
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from tests.chaos.cast import PARTS
from tests.commands.processes import Command
from tests.support.postgres import PostgresServer
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("CHAOS_SECONDS", "60"))
SEED = int(os.environ.get("CHAOS_SEED") or secrets.randbelow(1_000_000))
#: Seconds between two acts of each kind.
PACES = {
    "kill": 0.4,
    "stop": 1.5,
    "lose": 0.3,
    "silence": 5.0,
    "cut": 4.0,
    "flush scripts": 6.0,
    "kill Redis": 8.0,
}


class Monkey:
    """Does one thing after the other, each at its own pace, to players that are drawn by the seed."""

    def __init__(self, server: EmbeddedServer, proxy: LossyProxy, folder: Path) -> None:
        self._server, self._proxy, self._folder = server, proxy, folder
        self._random, self._stopped = Random(SEED), dict[int, float]()
        self._acts: dict[str, Callable[[], None]] = {
            "kill": lambda: self._strike(signal.SIGKILL),
            "stop": lambda: self._strike(signal.SIGSTOP),
            "lose": lambda: proxy.lose_replies(to="EVALSHA", times=self._random.randint(1, 4)),
            "silence": lambda: proxy.lose_replies(to="EVALSHA", silently=True),
            "cut": lambda: self._direct("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
            "flush scripts": lambda: self._direct("SCRIPT", "FLUSH"),
            "kill Redis": self._kill_redis,
        }
        self.done: Counter[str] = Counter()

    def run(self, cast: Command) -> None:
        until = time.monotonic() + SECONDS
        due = {act: time.monotonic() + pace for act, pace in PACES.items()}
        while time.monotonic() < until and not cast.has_ended():
            for act, at in due.items():
                if at <= time.monotonic():
                    due[act] = time.monotonic() + PACES[act]
                    self._acts[act]()
                    self.done[act] += 1
            self._let_go_on(time.monotonic())
            time.sleep(0.02)
        self._proxy.lose_replies(to="", times=0)
        self._let_go_on(float("inf"))

    def _strike(self, number: signal.Signals) -> None:
        """Send a signal to a player; each role is as likely as any other."""
        there = sorted(path.stem.split(".") for path in self._folder.glob("*.pid"))
        roles = sorted({role for role, pid in there if int(pid) not in self._stopped})
        if roles:
            role = self._random.choice(roles)
            pid = int(
                self._random.choice(
                    [pid for each, pid in there if each == role and int(pid) not in self._stopped]
                )
            )
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                self.done[f"{number.name} {role}"] += 1
                if number == signal.SIGSTOP:
                    self._stopped[pid] = time.monotonic() + self._random.uniform(0.5, 2.5)

    def _let_go_on(self, at: float) -> None:
        for pid in [pid for pid, until in self._stopped.items() if until <= at]:
            del self._stopped[pid]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _kill_redis(self) -> None:
        self._server.kill()
        time.sleep(self._random.uniform(0, 0.5))
        self._server.start()

    def _direct(self, *command: str) -> None:
        with Redis.from_url(self._server.url) as client:
            client.execute_command(*command)


def test_each_service_keeps_its_promises_whatever_happens(
    server: EmbeddedServer,
    postgres_server: PostgresServer,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    folder = tmp_path / "cast"
    folder.mkdir()
    with LossyProxy(server) as proxy:
        cast = Command(
            server.url,
            str(folder),
            program=("-m", "tests.chaos.cast"),
            DJANGO_SETTINGS_MODULE="tests.chaos.settings",
            DATABASE_URL=postgres_server.new_database(),
            PROXY_URL=proxy.url,
            CHAOS_FOLDER=str(folder),
        )
        with cast:
            assert eventually(lambda: list(folder.glob("aggregator.*.pid")) or cast.has_ended(), within=60)
            monkey = Monkey(server, proxy, folder)
            monkey.run(cast)
            (folder / "over").touch()
            assert eventually(cast.has_ended, within=300), cast.output
            assert cast.exit_code() == 0, cast.output

    end = json.loads((folder / "end.json").read_text())
    done = ", ".join(f"{number} {what}" for what, number in monkey.done.most_common())
    record_property(
        "figures", [*end["figures"].items(), ("replies lost", proxy.lost), ("done", done), ("seed", SEED)]
    )
    assert end["verdicts"] == {part: [] for part in PARTS}
    assert monkey.done.keys() >= PACES.keys()
    assert proxy.lost
    assert "Traceback" not in cast.output, cast.output
