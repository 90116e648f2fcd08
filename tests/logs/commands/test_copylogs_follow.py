"""copylogs --follow: files that grow and are rotated, each line once."""

from __future__ import annotations

import gzip
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.services.logs import Copier, Follower, LogStream, Problem
from components.services.logs import follower as follower_module
from components.services.logs.keys import JobKeys
from tests.logs.commands.test_copylogs import copied, each_once, start
from tests.support.logs import lines
from tests.support.waiting import eventually


@pytest.fixture
def problems() -> list[Problem]:
    return []


@pytest.fixture
def follow(redis: Redis, problems: list[Problem]) -> Iterator[Callable[..., Follower]]:
    """A follower of paths, which is closed at the end."""
    made: list[Follower] = []

    def begin(*paths: Path, quiet: float = 0, **options: Any) -> Follower:
        copier = Copier(LogStream(), size=1024, tell=problems.append, **options)
        made.append(Follower(copier, list(map(str, paths)), quiet=quiet))
        return made[-1]

    yield begin
    for each in made:
        each.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_bytes(lines(0, 100))
    return path


def write(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_lines_appended_to_a_file_are_copied(follow: Callable[..., Follower], log: Path) -> None:
    follower = follow(log)
    follower.look()
    for piece in (lines(100, 50), lines(150, 1)[:7], lines(150, 1)[7:], b"no end yet"):
        write(log, piece)
        follower.look()
    follower.look()

    assert copied() == each_once(lines(0, 151))


def test_a_file_that_was_renamed_is_read_on_beside_the_new_one(
    follow: Callable[..., Follower], log: Path
) -> None:
    follower = follow(log, quiet=3_600)
    follower.look()
    old = log.rename(log.with_name("access.log.1"))
    write(old, lines(100, 10))
    log.write_bytes(lines(200, 10))
    follower.look()
    write(old, lines(110, 10))
    write(log, lines(210, 10))
    follower.look()

    assert copied() == each_once(lines(0, 120), lines(200, 20))


def test_the_unterminated_last_line_of_a_quiet_file_counts(
    follow: Callable[..., Follower], log: Path
) -> None:
    follower = follow(log)
    write(log, b"no end")
    follower.look()
    assert copied() == each_once(lines(0, 100))
    os.utime(log, (0, 0))
    follower.look()
    follower.look()

    assert copied() == each_once(b"no end\n")
    write(log, b"no end either")
    follower.look()
    log.unlink()
    follower.look()
    assert copied() == each_once(b"no end either\n")


def test_a_file_that_was_cut_off_begins_anew(
    follow: Callable[..., Follower], log: Path, problems: list[Problem]
) -> None:
    follower = follow(log)
    follower.look()
    log.write_bytes(b"")
    follower.look()
    write(log, lines(200, 10))
    follower.look()
    log.write_bytes(lines(300, 400) + b"half a")  # longer than before
    follower.look()
    assert problems == []
    log.write_bytes(b"")
    follower.look()

    assert copied() == each_once(lines(0, 100), lines(200, 10), lines(300, 400))
    assert [(each.line, each.byte) for each in problems] == [(401, len(lines(300, 400)))]


def test_files_that_come_are_found(follow: Callable[..., Follower], tmp_path: Path) -> None:
    said: list[str] = []
    follower = follow(tmp_path / "later", tmp_path / "*.log", say=said.append)
    follower.look()
    (tmp_path / "link.log").symlink_to(__file__)  # leads out of the folder, which is told once
    (tmp_path / "later").write_bytes(lines(0, 10))
    (tmp_path / "a.log").touch()
    follower.look()
    write(tmp_path / "a.log", lines(10, 10))
    follower.look()

    assert copied() == each_once(lines(0, 20))
    assert [each.partition(" ")[0] for each in said] == [str(tmp_path / "link.log")]


def test_a_file_that_is_compressed_while_it_is_followed_is_copied_once(
    follow: Callable[..., Follower], log: Path, problems: list[Problem]
) -> None:
    follower = follow(log.parent)
    follower.look()
    packed = gzip.compress(log.read_bytes())
    (log.parent / "access.log.gz").write_bytes(packed[:50])
    follower.look()
    write(log.parent / "access.log.gz", packed[50:])
    log.unlink()
    for _ in range(3):
        follower.look()

    assert problems == []
    assert copied() == each_once(lines(0, 100))


def test_files_that_begin_with_the_same_line_are_told_apart(
    follow: Callable[..., Follower], tmp_path: Path, problems: list[Problem]
) -> None:
    """They are seen when they have nothing but that, and have one fingerprint."""
    one, other = tmp_path / "one", tmp_path / "other"
    follower = follow(tmp_path)
    for path in (one, other):
        path.write_bytes(b"#Version: 1.0\n")
    follower.look()
    for number in range(3):
        write(one, lines(10 * number, 10))
        write(other, lines(100 + 10 * number, 10))
        follower.look()

    found = copied()

    assert problems == []
    assert found.pop(b"#Version: 1.0") in (1, 2)
    assert found == each_once(lines(0, 30), lines(100, 30))


def test_a_file_that_is_followed_is_not_forgotten_although_nothing_comes(
    follow: Callable[..., Follower], redis: Redis, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = follow(log)
    follower.look()
    redis.zadd(JobKeys("default").seen, dict.fromkeys(redis.zrange(JobKeys("default").seen, 0, -1), 1))
    monkeypatch.setattr(follower_module, "KEPT", 0)
    follower.look()

    assert LogStream().forget(86_400) == 0
    write(log, lines(100, 100))
    follower.look()
    assert copied() == each_once(lines(0, 200))


@pytest.mark.slow
def test_the_command_follows_until_it_is_stopped(redis_server: object, redis: Redis, log: Path) -> None:
    process = start(redis_server.url, log, "--follow")  # type: ignore[attr-defined]
    assert eventually(lambda: redis.xlen(JobKeys("default").stream) == 1)
    write(log, lines(100, 10))
    assert eventually(lambda: redis.xlen(JobKeys("default").stream) == 2)

    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)

    assert process.returncode == 0, said
    assert b" lines/s" in said
    assert copied() == each_once(lines(0, 110))
