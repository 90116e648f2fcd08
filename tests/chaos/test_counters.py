"""
16 processes count in memory and at once, while some are killed, replies are lost and Redis is killed; then what Redis
has counted is held against what each of them has noted.

CHAOS_COUNTS is how often they count in memory (1,000,000; the whole test is ten times that), and a hundredth of that
at once.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from components.embedded import EmbeddedServer
from components.services.counters import CounterReader
from components.testing import redis_at
from tests.chaos.counting import NAMES, Note
from tests.commands.processes import Command
from tests.support.proxy import LossyProxy
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

COUNTS = int(os.environ.get("CHAOS_COUNTS", "1000000"))
KILLS = 8
_PATIENCE = 120 + COUNTS / 20_000  # seconds
PROGRAM = ("-m", "tests.chaos.counting")


def test_the_counts_equal_the_notes_whatever_happens(
    server: EmbeddedServer, tmp_path: Path, record_property: Any
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    began = time.monotonic()
    arguments = (str(folder), str(COUNTS), str(COUNTS // 100))
    with (
        redis_at(server.url),
        LossyProxy(server) as proxy,
        Command(
            proxy.url, *arguments, program=PROGRAM, DJANGO_SETTINGS_MODULE="tests.chaos.settings"
        ) as command,
    ):
        killed = make_trouble(server, proxy, command, folder)
        assert eventually(command.has_ended, within=_PATIENCE)
        assert command.exit_code() == 0

        figures = judge(folder, killed)
    figures += [("replies lost", f"{proxy.lost}"), ("seconds", f"{time.monotonic() - began:.1f}")]
    record_property("figures", figures)
    assert len(killed) == KILLS
    assert proxy.lost


def make_trouble(server: EmbeddedServer, proxy: LossyProxy, command: Command, folder: Path) -> set[int]:
    """Those that were killed, each when all together had counted so much more."""
    random, killed = Random(7), set[int]()
    for number in range(KILLS):
        threshold = COUNTS * (number + 1) // (KILLS + 4)
        proxy.lose_replies(to="EVALSHA", times=3, silently=number == 3)
        assert eventually(
            lambda least=threshold: counted(folder) >= least or command.has_ended(), within=_PATIENCE
        )
        if number == KILLS // 2:
            server.kill()
            server.start()
        alive = sorted(each for each in at_work(folder) if each not in killed)
        if alive:
            victim = random.choice(alive)
            os.kill(victim, signal.SIGKILL)
            killed.add(victim)
    return killed


def notes(folder: Path) -> Iterator[tuple[int, Note]]:
    for path in folder.iterdir():
        if path.name.isdigit() and path.stat().st_size:
            yield int(path.name), Note(path)


def counted(folder: Path) -> int:
    return sum(note.read()[0] for _pid, note in notes(folder))


def at_work(folder: Path) -> list[int]:
    """Those that have something left to do."""
    return [
        pid
        for pid, note in notes(folder)
        if not (folder / f"{pid}.ended").exists() and note.read()[0] < COUNTS // 20
    ]


def judge(folder: Path, killed: set[int]) -> list[tuple[str, str]]:
    """Hold what Redis has against the notes; figures for the report."""
    in_memory = at_once = lost = unknown = 0
    for pid, note in notes(folder):
        counted, sent, begun, done = note.read()
        names = [f"buffered:{pid}:{number}" for number in range(NAMES)]
        found = CounterReader().read([*names, f"direct:{pid}"], 3_600)
        direct = found.pop(f"direct:{pid}").total
        buffered = sum(series.total for series in found.values())
        if pid not in killed:
            assert buffered == counted == sent
        assert sent <= buffered <= counted
        assert done <= direct <= begun
        in_memory, at_once = in_memory + buffered, at_once + direct
        lost, unknown = lost + counted - buffered, unknown + begun - done
    assert in_memory + lost >= COUNTS - COUNTS % 16
    return [
        ("counted in memory, at once", f"{in_memory:,}, {at_once:,}"),
        ("taken along by the killed", f"{lost:,}"),
        ("updates whose end was not told", f"{unknown:,}"),
    ]
