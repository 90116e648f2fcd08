"""The command copylogs, and what it makes of files: all lines once, whoever stops it, and problems told."""

import gzip
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.core.management import CommandError, call_command
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.logs import Copier, Follower, LogStream, Problem
from components.services.logs import follower as follower_module
from components.services.logs.keys import JobKeys
from tests.support.logs import joined, lines
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("redis")

CHUNK = "--chunk=1K"
Follow = Callable[..., Follower]


def run(*arguments: object) -> tuple[int, str]:
    """The exit code, and all that was said."""
    out = StringIO()
    try:
        call_command("copylogs", *map(str, arguments), stdout=out, stderr=out)
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


def copied() -> Counter[bytes]:
    """The lines that an aggregation gets, and how often; it counts them all."""
    aggregation = joined()
    consumer, found = aggregation.consumer(), Counter[bytes]()
    while chunks := consumer.claim(100):
        for chunk in chunks:
            data = consumer.read(chunk)
            assert len(data) == chunk.end - chunk.start
            found.update(data.splitlines())
        consumer.flush(chunks, {})
    return found


def each_once(*data: bytes) -> Counter[bytes]:
    return Counter(b"".join(data).splitlines())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_bytes(lines(0, 500))
    return path


def test_all_lines_of_all_files_are_copied(tmp_path: Path, log: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "b.gz").write_bytes(gzip.compress(lines(500, 200)) + gzip.compress(lines(700, 200)))
    (tmp_path / "old" / "a.zst").write_bytes(zstandard.compress(lines(900, 300)))
    (tmp_path / "empty").touch()
    code, said = run(log, tmp_path / "old", tmp_path / "*t?", CHUNK)
    assert (code, said.split(";")[0].split(" in ")[0]) == (0, f"1,200 lines, {len(lines(0, 1_200)):,} bytes")
    assert copied() == each_once(lines(0, 1_200))


def test_no_file_is_copied_twice_whatever_its_name(tmp_path: Path, log: Path) -> None:
    run(log, CHUNK)
    log.rename(tmp_path / "access.log.1")
    (tmp_path / "access.log.2.gz").write_bytes(gzip.compress(lines(0, 500)))
    (tmp_path / "copy.zst").write_bytes(zstandard.compress(lines(0, 500)))
    for _ in range(2):
        code, said = run(tmp_path, CHUNK)
        assert (code, "0 lines" in said, "files copied before: 3" in said) == (0, True, True)
    assert copied() == each_once(lines(0, 500))


def test_a_file_that_begins_as_a_shorter_one_did_is_another(tmp_path: Path) -> None:
    for data in (HEAD, HEAD + lines(0, 200)):
        (tmp_path / "a").write_bytes(data)
        run(tmp_path / "a", CHUNK)
    (tmp_path / "b").write_bytes(HEAD + lines(200, 300))
    assert run(tmp_path, CHUNK)[0] == 0
    assert copied() == each_once(HEAD, HEAD, lines(0, 500))


def test_an_unreadable_file_is_reported_and_the_rest_is_copied(tmp_path: Path, log: Path) -> None:
    (tmp_path / "cut.gz").write_bytes(gzip.compress(lines(500, 2_000))[:-12])
    (tmp_path / "old.xz").write_bytes(lzma.compress(lines(0, 9)))
    (tmp_path / "junk").write_bytes(os.urandom(20_000))

    code, said = run(*(tmp_path / name for name in ("nothing", "cut.gz", "junk", "old.xz")), log, CHUNK)

    assert code == 1
    assert "nothing, line 0, byte 0: cannot be read: No such file or directory" in said
    assert re.search(r"old\.xz, line 1, byte 0: it is compressed by xz, .*copylogs -`\n", said)
    assert re.search(r"cut\.gz, line [12],\d\d\d, byte \d\d,\d\d\d: ", said)
    found = copied()
    assert each_once(lines(0, 1_500)).items() <= found.items()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(lines(500, 2_000)))  # mended
    assert run(tmp_path / "cut.gz", CHUNK)[0] == 0
    assert each_once(lines(0, 2_500)).items() <= (found + copied()).items()


def test_resuming_in_a_file_reports_true_line_numbers(log: Path) -> None:
    long = b"x" * 3_000 + b"\n"
    log.write_bytes(lines(0, 100) + long + lines(100, 100) + long + lines(200, 100) + long)
    taken = iter(range(1_000))

    def stop() -> None:
        if next(taken) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Copier(LogStream(), size=1_024, progress=stop).copy(log)
    assert LogStream().status().skipped == 1

    said = run(log, CHUNK)[1]

    assert re.findall(r", line (\d+), byte ([\d,]+): the line is longer", said) == [
        ("202", f"{len(lines(0, 200) + long):,}"),
        ("303", f"{len(lines(0, 300) + 2 * long):,}"),
    ]
    assert LogStream().status().skipped == 3
    assert copied() == each_once(lines(0, 300))


def test_files_that_were_not_seen_for_long_can_be_forgotten(redis: Redis, tmp_path: Path, log: Path) -> None:
    gone = tmp_path / "gone"
    gone.write_bytes(lines(500, 100))
    assert run(log, gone, CHUNK, "--forget=1")[1].endswith("Forgotten files: 0.\n")
    gone.rename(tmp_path / "away")
    seen = JobKeys("default").seen
    for days, count in ((31, 0), (2, 1)):
        aged = {each: at - days * 86_400_000 for each, at in redis.zrange(seen, 0, -1, withscores=True)}
        redis.zadd(seen, aged)
        assert run(log, CHUNK, "--forget=32")[1].endswith(f"Forgotten files: {count}.\n")

    assert [each.name for each in LogStream().files()] == [str(log)]
    assert redis.zcard(seen) == 1
    run(log, tmp_path / "away", CHUNK)
    assert copied() == each_once(lines(0, 600), lines(500, 100))


HEAD = b"#Version: 1.0\n"


def test_a_last_line_that_is_being_written_waits_for_its_newline(log: Path) -> None:
    whole = log.read_bytes()
    for end in (1, 30, 47, 48, 1_000, 5_000, 5_001, len(whole) - 7, len(whole) - 1):
        log.write_bytes(whole[:end])
        code, said = run(log, CHUNK)
        assert code == 0
        is_cut = not whole[:end].endswith(b"\n")
        assert (f"without a newline, not copied yet: 1 ({log})" in said) == is_cut
        assert [each.state for each in LogStream().files()] == ["copying" if is_cut else "done"]
    log.write_bytes(whole)

    code, said = run(log, CHUNK)

    assert (code, "without a newline" in said) == (0, False)
    assert copied() == each_once(whole)
    assert [each.state for each in LogStream().files()] == ["done"]


def test_a_last_line_counts_without_a_newline_when_nobody_has_written_for_a_day(log: Path) -> None:
    log.write_bytes(lines(0, 3) + b"the end")
    for age in (0, 86_000):
        written_at = time.time() - age
        os.utime(log, (written_at, written_at))
        assert "not copied yet: 1" in run(log, CHUNK)[1]
    os.utime(log, (written_at - 500, written_at - 500))

    assert "1 lines, 7 bytes" in run(log, CHUNK)[1]
    assert "files copied before: 1" in run(log, CHUNK)[1]
    (log.parent / "b.log").write_bytes(lines(3, 3) + b"the end of it")
    assert run(log.parent / "b.log", CHUNK, "--complete")[1].startswith("4 lines")
    assert copied() == each_once(lines(0, 6), b"the end\n", b"the end of it")


def test_standard_input_is_copied(redis_server: EmbeddedServer) -> None:
    process = start(redis_server.url, "-", CHUNK, stdin=subprocess.PIPE)
    data = lines(0, 5) + b"x" * 70_000 + b"\n" + lines(5, 500) + b"the end"
    said = process.communicate(gzip.compress(data), timeout=60)[0].decode()
    assert (process.returncode, said.count("line 6, byte ")) == (1, 1)
    assert copied() == each_once(lines(0, 505), b"the end")


def test_a_last_line_of_a_compressed_file_counts_without_a_newline(tmp_path: Path) -> None:
    """Also where the rest of the file was copied before it was rotated and compressed."""
    log = tmp_path / "access.log"
    log.write_bytes(lines(0, 300) + b"the end")
    assert "not copied yet: 1" in run(log, CHUNK)[1]
    packed = gzip.compress(log.read_bytes())
    log.unlink()
    (tmp_path / "access.log.1.gz").write_bytes(packed)
    (tmp_path / "b.zst").write_bytes(zstandard.compress(lines(300, 10) + b"another end"))

    code, said = run(tmp_path, CHUNK)

    assert (code, "without a newline" in said) == (0, False)
    assert copied() == each_once(lines(0, 300), b"the end\n", lines(300, 10), b"another end")


def test_a_gzip_file_that_grows_while_it_is_read_is_not_done(tmp_path: Path) -> None:
    """A web server appends a member for each of its buffers."""
    log = tmp_path / "access.log.gz"
    log.write_bytes(gzip.compress(lines(0, 100)))
    taken = iter(range(1_000))

    def grow() -> None:
        if next(taken) == 5:
            with log.open("ab") as file:
                file.write(gzip.compress(lines(100, 100)))

    Copier(LogStream(), size=1_024, progress=grow).copy(log)
    run(log, CHUNK)

    assert [(each.state, each.size) for each in LogStream().files()] == [("done", log.stat().st_size)]
    assert copied() == each_once(lines(0, 200))


@pytest.mark.parametrize(
    "interfere",
    [lambda redis, log: Copier(LogStream(), size=3_000).copy(log), lambda redis, log: redis.flushall()],
)
def test_lines_are_copied_once_whoever_interferes(
    redis: Redis, log: Path, interfere: Callable[[Redis, Path], object]
) -> None:
    """The chunks of the other have another size, so that their ends differ."""
    taken = iter(range(1_000))
    copier = Copier(LogStream(), size=2_000, progress=lambda: next(taken) == 3 and interfere(redis, log))
    assert copier.copy(log) == "copied"
    assert copier.problems == 0
    assert copied() == each_once(lines(0, 500))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--limit=1K", "--chunk=2K"], "2,048"),
        (["--limit=1K", "--chunk=1K"], "1,092"),
        (["--limit=1X"], "number of bytes"),
        (["--chunk=17M"], "16,777,216"),
        (["--chunk=10"], "1,024"),
        (["--job="], "''"),
        (["--forget=0.5"], "number of days"),
        (["--forget=1", "--follow"], "--follow"),
        (["--complete", "--follow"], "--complete"),
    ],
)
def test_wrong_usage_is_reported(log: Path, arguments: list[str], reason: str) -> None:
    code, said = run(log, *arguments)
    assert reason in said
    assert code in (1, 2)  # argparse's own errors have 1 where a program calls


def start(redis_url: str, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    about = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.commands.settings", "REDIS_URL": redis_url}
    command = [sys.executable, "-m", "django", "copylogs", *map(str, arguments)]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, env=about, **output, **options)


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
def short(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_bytes(lines(0, 100))
    return path


def write(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def grow(follower: Follower, path: Path, data: bytes) -> None:
    write(path, data)
    follower.look()


def test_a_renamed_file_is_read_on_beside_the_new_one(follow: Follow, short: Path) -> None:
    follower = follow(short, quiet=3_600)
    follower.look()
    old = short.rename(short.with_name("access.log.1"))
    write(old, lines(100, 10))
    short.write_bytes(lines(200, 10))
    follower.look()
    write(old, lines(110, 10))
    grow(follower, short, lines(210, 10))

    assert copied() == each_once(lines(0, 120), lines(200, 20))


def test_the_last_line_of_a_quiet_file_counts(follow: Follow, short: Path) -> None:
    follower = follow(short)
    grow(follower, short, b"no end")
    assert copied() == each_once(lines(0, 100))
    os.utime(short, (0, 0))
    follower.look()
    follower.look()

    assert copied() == each_once(b"no end\n")
    grow(follower, short, b"no end either")
    short.unlink()
    follower.look()
    assert copied() == each_once(b"no end either\n")


def test_a_file_that_was_cut_off_begins_anew(follow: Follow, short: Path, problems: list[Problem]) -> None:
    follower = follow(short)
    follower.look()
    short.write_bytes(b"")
    follower.look()
    grow(follower, short, lines(200, 10))
    short.write_bytes(lines(300, 400) + b"half a")  # longer than before
    follower.look()
    assert problems == []
    short.write_bytes(b"")
    follower.look()

    assert copied() == each_once(lines(0, 100), lines(200, 10), lines(300, 400))
    assert [(each.line, each.byte) for each in problems] == [(401, len(lines(300, 400)))]


def test_files_that_come_are_found(follow: Follow, tmp_path: Path) -> None:
    said: list[str] = []
    follower = follow(tmp_path / "later", tmp_path / "*.log", say=said.append)
    follower.look()
    (tmp_path / "link.log").symlink_to(__file__)  # leads out of the folder, which is told once
    (tmp_path / "later").write_bytes(lines(0, 10))
    (tmp_path / "a.log").touch()
    follower.look()
    grow(follower, tmp_path / "a.log", lines(10, 10))

    assert copied() == each_once(lines(0, 20))
    assert [each.partition(" ")[0] for each in said] == [str(tmp_path / "link.log")]


def test_a_followed_file_that_is_compressed_is_copied_once(
    follow: Follow, short: Path, problems: list[Problem]
) -> None:
    follower = follow(short.parent)
    follower.look()
    packed = gzip.compress(short.read_bytes())
    (short.parent / "access.log.gz").write_bytes(packed[:50])
    follower.look()
    write(short.parent / "access.log.gz", packed[50:])
    short.unlink()
    for _ in range(3):
        follower.look()

    assert problems == []
    assert copied() == each_once(lines(0, 100))


def test_a_file_that_is_followed_is_not_forgotten(
    follow: Follow, redis: Redis, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = follow(short)
    follower.look()
    redis.zadd(JobKeys("default").seen, dict.fromkeys(redis.zrange(JobKeys("default").seen, 0, -1), 1))
    monkeypatch.setattr(follower_module, "KEPT", 0)
    follower.look()
    assert LogStream().forget(86_400) == 0
    grow(follower, short, lines(100, 100))
    assert copied() == each_once(lines(0, 200))


def test_files_that_begin_alike_are_told_apart(
    follow: Follow, tmp_path: Path, problems: list[Problem]
) -> None:
    """They are seen when they have nothing but that, and have one fingerprint."""
    paths = {tmp_path / "one": 0, tmp_path / "other": 100}
    follower = follow(tmp_path)
    for path in paths:
        path.write_bytes(HEAD)
    follower.look()
    for number in range(3):
        for path, first in paths.items():
            write(path, lines(first + 10 * number, 10))
        follower.look()

    found = copied()

    assert problems == []
    assert found.pop(HEAD.strip()) in (1, 2)
    assert found == each_once(lines(0, 30), lines(100, 30))


@pytest.mark.parametrize("how", ["run", "follow"])
def test_space_that_a_writer_has_reserved_is_waited_for(follow: Follow, tmp_path: Path, how: str) -> None:
    path = tmp_path / "padded.log"
    path.write_bytes(bytes(65_536))
    look = follow(path).look if how == "follow" else lambda: run(path)
    for number in range(4):
        look()
        written = lines(0, 10 * (number + 1)) + b"half" * (number == 3)
        with path.open("r+b") as file:
            file.write(written)
        look()
    os.truncate(path, len(written))
    write(path, b" a line\n")
    look()

    assert copied() == each_once(lines(0, 40), b"half a line")


@pytest.mark.parametrize("how", ["run", "follow"])
def test_what_is_written_at_the_old_place_after_a_cut_is_copied(
    follow: Follow, problems: list[Problem], tmp_path: Path, how: str
) -> None:
    path = tmp_path / "access.log"
    look = follow(path).look if how == "follow" else lambda: run(path)
    with path.open("wb", buffering=0) as writer:  # not for appending
        for rotation in range(3):
            for part in range(2):
                writer.write(lines(1_000 * rotation + 200 * part, 200))
                look()
            os.truncate(path, 0)

    assert copied() == each_once(*(lines(1_000 * rotation, 400) for rotation in range(3)))
    assert [each.line for each in problems] == [1, 1][: len(problems)]
    assert len(problems) == (2 if how == "follow" else 0)  # they are told


def test_a_file_that_was_refused_is_tried_again_when_it_has_changed(
    follow: Follow, short: Path, problems: list[Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(short).look()
    data = bytearray(short.read_bytes() + lines(100, 100))
    data[len(lines(0, 100)) - 5] ^= 1
    short.write_bytes(data)
    second = follow(short)
    for number in range(3):
        grow(second, short, lines(200 + number, 1))
    short.write_bytes(b"")
    second.look()
    grow(second, short, lines(400, 300))

    assert copied() == each_once(lines(0, 100), lines(400, 300))
    assert len(problems) == 1, "the same is told once"

    locked = short.with_name("locked.log")
    locked.write_bytes(lines(900, 10))
    third = follow(locked)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda *args, **kwargs: os.open(short.parent, os.O_WRONLY))
        third.look()
    third.look()
    assert copied() == each_once()
    locked.chmod(0o640)
    third.look()
    assert copied() == each_once(lines(900, 10))


@pytest.mark.slow
def test_the_command_follows_until_it_is_stopped(redis_server: object, redis: Redis, short: Path) -> None:
    process = start(redis_server.url, short, "--follow")  # type: ignore[attr-defined]
    assert eventually(lambda: redis.xlen(JobKeys("default").stream) == 1)
    write(short, lines(100, 10))
    assert eventually(lambda: redis.xlen(JobKeys("default").stream) == 2)

    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)

    assert process.returncode == 0, said
    assert b" lines/s" in said
    assert copied() == each_once(lines(0, 110))
