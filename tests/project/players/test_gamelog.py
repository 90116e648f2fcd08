"""The files of the game's log."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from project.players import gamelog
from project.players.crowd import Crowd
from project.players.gamelog import DAYS, GameLog, make_past
from project.players.geography import read_locations

NOW = datetime(2026, 3, 4, 12, 34, 56, tzinfo=UTC)


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return Crowd(read_locations()[:5])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_past_is_made_once(crowd: Crowd, tmp_path: Path) -> None:
    folder = tmp_path / "var" / "logs"
    make_past(folder, crowd, NOW, lines=100)
    before = contents(folder)
    make_past(folder, crowd, NOW + timedelta(hours=1), lines=100)

    assert contents(folder) == before
    assert len(before) == DAYS + 1
    assert min(before) == "game-2026-02-04.log.gz"
    assert max(before) == "game-2026-03-04.log.gz"
    assert [path.name for path in folder.parent.iterdir()] == ["logs"]


def test_each_file_has_lines_of_its_day_in_their_order(crowd: Crowd, folder: Path) -> None:
    make_past(folder, crowd, NOW, lines=500)

    for path in folder.iterdir():
        day = path.name.removeprefix("game-").removesuffix(".log.gz")
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        times = [line.split()[2] for line in lines if f" {day} " in line]
        assert len(times) >= len(lines) - 2
        assert times == sorted(times)
        assert len(lines) > 100


def test_today_is_made_until_now(crowd: Crowd, folder: Path) -> None:
    make_past(folder, crowd, NOW, lines=5000)

    text = gzip.decompress((folder / "game-2026-03-04.log.gz").read_bytes()).decode()
    times = [line.split()[2] for line in text.splitlines() if " 2026-03-04 " in line]

    assert "12:30:00" < max(times) < "12:34:56"


def test_the_next_process_does_the_work_of_a_killed_one(crowd: Crowd, folder: Path) -> None:
    make_past(folder, crowd, NOW, lines=100)
    whole = contents(folder)
    (folder / "game-2026-02-20.log.gz").unlink()
    (folder.parent / "logs.part").write_bytes(b"half of it")

    make_past(folder, crowd, NOW, lines=100)

    assert {name: gzip.decompress(data) for name, data in contents(folder).items()} == {
        name: gzip.decompress(data) for name, data in whole.items()
    }
    assert [path.name for path in folder.parent.iterdir()] == ["logs"]


def test_days_that_are_long_over_go(crowd: Crowd, folder: Path) -> None:
    make_past(folder, crowd, NOW, lines=100)
    (folder / "game.log").touch()
    make_past(folder, crowd, NOW + timedelta(days=2), lines=100)

    assert len(contents(folder)) == DAYS + 2
    assert min(contents(folder)) == "game-2026-02-06.log.gz"


def test_it_goes_on_where_another_process_was_killed_in_the_middle_of_a_line(folder: Path) -> None:
    (folder / "game.log").write_bytes(b"first\nseco")
    log = GameLog(folder)
    log.write(["third", "fourth"])
    log.close()
    log = GameLog(folder)
    log.write(["fifth"])
    log.close()

    assert (folder / "game.log").read_bytes() == b"first\nseco\nthird\nfourth\nfifth\n"


def test_a_large_file_is_renamed_and_the_oldest_goes(folder: Path) -> None:
    log = GameLog(folder, size=12, kept=2)
    for number in range(7):
        log.write([f"line {number}"])
    log.close()

    assert contents(folder) == {
        "game.log": b"line 6\n",
        "game.log.1": b"line 4\nline 5\n",
        "game.log.2": b"line 2\nline 3\n",
    }


def test_reading_a_growing_file_returns_whole_lines(folder: Path) -> None:
    log = GameLog(folder)
    for number in range(50):
        log.write([f"line {number}"] * number)
        assert (folder / gamelog.NAME).read_bytes()[-1:] in (b"", b"\n")
    log.close()
