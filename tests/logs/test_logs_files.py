"""Files of logs as blocks of whole lines: plain, gzip, zstd; and what is wrong with them."""

import bz2
import errno
import gzip
import io
import lzma
import os
import socket
import threading
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from components.exceptions import ExtraNotInstalled, FileDamaged, FileDiffers
from components.services.logs import Place, Problem, find_files, readblocks, readlines
from components.services.logs.blocks import BlockReader
from components.services.logs.sources import source_of
from tests.support.logs import lines

SIZE = 1024
#: What zstd passes over, and pzstd begins with.
SKIPPED = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
LOG = lines(0, 500)
FORMATS = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "gzip of several members": lambda data: b"".join(
        gzip.compress(data[at : at + 700]) for at in range(0, len(data), 700)
    ),
    "zstd": zstandard.compress,
    "pzstd": lambda data: SKIPPED + zstandard.compress(data) + SKIPPED,
    "zstd of several frames": lambda data: b"".join(
        zstandard.compress(data[at : at + 700]) for at in range(0, len(data), 700)
    ),
}


#: Lengths of lines around that of a block, and bytes that a file gives at a time.
lengths = st.one_of(
    st.integers(0, 60),
    st.integers(SIZE - 3, SIZE + 3),
    st.integers(2 * SIZE - 3, 2 * SIZE + 3),
    st.integers(0, 5 * SIZE),
)
steps = st.sampled_from([1, 7, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE, 1 << 20])


class Slow(io.BytesIO):
    """A file that gives only so many bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self._step = step

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self._step if size is None or size < 0 else min(size, self._step))


def split(data: bytes) -> tuple[list[bytes], list[int]]:
    """The lines that a reader is to hand out, and the numbers of those that it is to leave out."""
    found = data.split(b"\n")
    if not found[-1]:
        found.pop()
    kept = [line for line in found if len(line) < SIZE]
    return kept, [number for number, line in enumerate(found, 1) if len(line) >= SIZE]


def numbered(sizes: list[int], has_end: bool) -> bytes:
    """Lines of these lengths, no two of the long ones alike."""
    return b"\n".join((b"%d " % at * size)[:size] for at, size in enumerate(sizes)) + b"\n" * has_end


@settings(max_examples=60)
@example([5 * SIZE, 600, 600, 3], "plain", 1 << 20, True)
@example([5 * SIZE, SIZE - 1, 3], "gzip", 1 << 20, True)
@given(st.lists(lengths, max_size=12), st.sampled_from(sorted(FORMATS)), steps, st.booleans())
def test_long_lines_are_those_of_a_plain_split(sizes: list[int], kind: str, step: int, has_end: bool) -> None:
    data = numbered(sizes, has_end)
    kept, left_out = split(data)
    problems: list[Problem] = []
    file = Slow(FORMATS[kind](data), step)
    reader = BlockReader(source_of(file), name="log", size=SIZE, tell=problems.append)

    blocks = [*iter(reader.next, None)]

    assert [line for each in blocks for line in each.data.splitlines()] == kept
    assert [each.line for each in problems] == left_out
    assert all(data[each.start : each.end] == each.data for each in blocks)
    assert (reader.left, file.read(1)) == (0, b"")
    assert reader.place.position == len(data)
    for at, each in enumerate(blocks):
        place = Place(each.end, each.line + each.lines - 1, each.mark)
        again = BlockReader(
            source_of(Slow(FORMATS[kind](data), step)), name="log", size=SIZE, tell=problems.append
        )
        again.go_to(place)
        following = again.next()
        expected = blocks[at + 1] if at + 1 < len(blocks) else None
        assert (following and following.start) == (expected and expected.start)


@settings(max_examples=60)
@given(st.lists(lengths, min_size=1, max_size=8), st.lists(st.integers(0, 9 * SIZE), max_size=6))
def test_a_growing_file_gives_the_lines_of_a_plain_split(sizes: list[int], cuts: list[int]) -> None:
    """None means "no more now" as long as the end is not final, and the reader goes on when there is more."""
    data = numbered(sizes, True)
    file = io.BytesIO()
    problems: list[Problem] = []
    reader = BlockReader(source_of(file, "plain"), name="log", size=SIZE, tell=problems.append)
    found = b""

    for end in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        at = file.tell()
        file.seek(0, io.SEEK_END)
        file.write(data[file.tell() : end])
        file.seek(at)
        while block := reader.next(is_final=False):
            found += block.data
        assert reader.place.position == data.rfind(b"\n", 0, end) + 1

    kept, left_out = split(data)
    assert found.splitlines() == kept
    assert [each.line for each in problems] == left_out
    assert reader.left == 0


def test_a_pipe_that_has_nothing_yet_has_not_ended() -> None:
    """Whoever shares standard input can make it non-blocking; a read then gives None, and not the end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    rest = lines(100, 400)

    def write() -> None:
        with io.FileIO(writing, "wb") as file:
            file.write(gzip.compress(lines(0, 100)))
            is_waiting.wait()
            file.write(gzip.compress(rest))

    class Noting(io.FileIO):
        def read(self, size: int | None = -1) -> bytes | None:  # type: ignore[override]
            found = super().read(size)
            if found is None:
                is_waiting.set()
            return found

    is_waiting = threading.Event()
    writer = threading.Thread(target=write)
    with Noting(reading, "rb") as file:
        writer.start()
        found: list[bytes] = []
        _read_into(found, file)
    writer.join()

    assert b"".join(found) == lines(0, 500)


GZIP, ZSTD = gzip.compress(lines(100, 2_000)), zstandard.compress(lines(100, 2_000))


@pytest.mark.parametrize(
    ("pack", "second", "says", "lost"),
    [
        (gzip.compress, GZIP[:-40], r"log, line [\d,]+, byte [\d,]+: gzip member 2 ends too early", 600),
        (gzip.compress, bytes([*GZIP[:-8], GZIP[-8] ^ 1, *GZIP[-7:]]), "gzip member 2 is damaged: ", 50),
        (gzip.compress, b"junk", "gzip member 1 is followed by something else", 2_000),
        (gzip.compress, b"\0" * 600_000, "", 2_000),
        (zstandard.compress, b"\0" * 600_000, "", 2_000),
        (zstandard.compress, b"\0" * 9 + SKIPPED + ZSTD, "", 0),
        (zstandard.compress, ZSTD[:-9], "ends too early", 2_000),
        (zstandard.compress, ZSTD[:-300], "ends too early", 2_000),
        (zstandard.compress, ZSTD[:8] + b"\xff" * 32 + ZSTD[40:], "a zstd frame is damaged", 2_000),
    ],
)
def test_damage_is_told_after_the_rest(
    pack: Callable[[bytes], bytes], second: bytes, says: str, lost: int
) -> None:
    found: list[bytes] = []

    with pytest.raises(FileDamaged, match=says) if says else nullcontext():
        _read_into(found, pack(lines(0, 100)) + second)

    data = b"".join(found)
    assert lines(0, 2_100).startswith(data)
    assert data.endswith(b"\n")
    assert 2_100 - lost <= data.count(b"\n")
    with pytest.raises(FileDamaged, match=r"^log, line 1, byte 0: .* ends too early"):
        _read_into([], pack(LOG)[:11])


@pytest.mark.parametrize(
    ("pack", "byte"), [(gzip.compress, b"\n"), (zstandard.compress, b"\n"), (zstandard.compress, b"x")]
)
def test_a_file_that_expands_needs_no_more_memory_than_any(
    pack: Callable[[bytes], bytes], byte: bytes
) -> None:
    """Of empty lines, or of one line without an end."""
    told: list[Problem] = []
    data = pack(byte * 50_000_000)
    reader = BlockReader(source_of(io.BytesIO(data)), name="log", size=SIZE, tell=told.append)
    found = reader.next()
    assert (found and len(found.data), len(told)) == ((SIZE, 0) if byte == b"\n" else (None, 1))
    assert len(reader._buffer) < 34_000_000


def _read_into(found: list[bytes], data: bytes | io.RawIOBase | io.BytesIO) -> None:
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    reader = BlockReader(source_of(file), name="log", size=SIZE, tell=print)
    while block := reader.next():
        found.append(block.data)


def test_a_file_that_is_not_what_the_place_was_of_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(LOG)
    [block, *_rest] = readblocks(path, size=SIZE)
    place = Place(block.end, block.lines, block.mark)

    path.write_bytes(LOG[:100] + b"!" + LOG[101:])
    with pytest.raises(FileDiffers, match="differs from it before that byte"):
        list(readblocks(path, place=place))

    path.write_bytes(LOG[:200])
    with pytest.raises(FileDiffers, match="is shorter than the"):
        list(readblocks(path, place=place))


#: Files that are not read, and how they are called.
NOT_READ = {
    lzma.compress(LOG): "xz",
    lzma.compress(LOG, lzma.FORMAT_ALONE): "xz",
    bz2.compress(LOG): "bzip2",
    bz2.compress(b""): "bzip2",
    b"\x04\x22\x4d\x18" + LOG: "lz4",
    b"PK\x03\x04" + LOG: "zip",
    b"access.log".ljust(257, b"\0") + b"ustar" + LOG: "tar",
    gzip.compress(gzip.compress(LOG, mtime=0), mtime=0): "twice",
    gzip.compress(zstandard.compress(LOG), mtime=0): "twice",
    zstandard.compress(LOG.decode().encode("UTF-16")): "UTF-16",
    gzip.compress(b"PK\x03\x04" + LOG, mtime=0): "zip",
    **{LOG.decode().encode(code): code[:6] for code in ("UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32")},
    **{f"\ufeff{LOG.decode()}".encode(code): "UTF-16" for code in ("UTF-16LE", "UTF-16BE")},
}


@pytest.mark.parametrize(
    ("data", "says"), NOT_READ.items(), ids=lambda value: value if type(value) is str else ""
)
def test_what_is_not_read_is_refused_with_what_makes_lines_of_it(data: bytes, says: str) -> None:
    with pytest.raises(FileDamaged, match=rf"^log, line 1, byte 0: it is .*{says}.* copylogs -`"):
        _read_into([], data)
    reader = BlockReader(source_of(io.BytesIO(data), "plain"), name="log", size=SIZE, tell=print)
    assert b"".join(block.data for block in iter(reader.next, None)) == data.strip(b"\0")


@pytest.mark.parametrize(
    "data", [zlib.compress(LOG), b"SQLite format 3\0\x10\0\1\1\0@  " + bytes(80) + b"1", bytes(range(64))]
)
def test_what_is_no_text_is_refused_unless_it_is_said_to_have_lines(data: bytes) -> None:
    with pytest.raises(FileDamaged, match=r"it is no text: .*--format plain"):
        _read_into([], data)
    reader = BlockReader(source_of(io.BytesIO(data + LOG), "plain"), name="log", size=SIZE, tell=print)
    assert b"".join(block.data for block in iter(reader.next, None)).endswith(LOG)


def test_without_zstandard_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").write_bytes(gzip.compress(LOG))
    (tmp_path / "log.zst").write_bytes(zstandard.compress(LOG))
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    assert len(list(readlines(tmp_path / "log"))) == 500
    with pytest.raises(ExtraNotInstalled, match=r"components\[logs\]"):
        list(readlines(tmp_path / "log.zst"))


def test_damage_inside_of_a_line_that_is_left_out_is_told_where_that_line_begins() -> None:
    """The whole of it is left out when the file is mended: its rest is no line."""
    data = lines(0, 5) + b"x" * 3 * SIZE
    rest = b"x" * SIZE + b"the end\n" + lines(5, 5)
    reader = BlockReader(source_of(io.BytesIO(gzip.compress(data)[:-8])), name="log", size=SIZE)

    [block, place] = [reader.next(), reader.place]
    with pytest.raises(FileDamaged, match=f"^log, line 6, byte {len(lines(0, 5))}: "):
        reader.next()

    assert block is not None
    assert reader.place == place == Place(block.end, 5, block.mark)
    mended = BlockReader(source_of(io.BytesIO(data + rest)), name="log", size=SIZE)
    mended.go_to(reader.place)
    after = mended.next()
    assert after is not None
    assert (after.data, after.line) == (lines(5, 5), 7)


class FailingDisk(io.BytesIO):
    """Its end cannot be read: no file system makes errors on demand."""

    def read(self, size: int | None = -1) -> bytes:
        if found := super().read(size):
            return found
        raise OSError(errno.EIO, "Input/output error")


def test_text_before_undecodable_bytes_is_read() -> None:
    found: list[bytes] = []
    with pytest.raises(FileDamaged, match=f"line 501, byte {len(LOG):,}: it cannot be read any further: Inp"):
        _read_into(found, FailingDisk(LOG + b"half a l"))
    assert b"".join(found) == LOG


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of logs, beside what must not be read."""
    folder, secret = tmp_path / "logs", tmp_path / "secret"
    (folder / "old").mkdir(parents=True)
    (folder / "a").touch()
    (folder / "old" / "b").touch()
    secret.mkdir()
    (secret / "passwords").touch()
    return folder


def found(*paths: object) -> tuple[list[str], list[str]]:
    links: list[str] = []
    return list(find_files(map(str, paths), tell=links.append)), links


def test_links_out_of_a_folder_are_left_out_and_told(logs: Path) -> None:
    (logs / "file").symlink_to(logs.parent / "secret" / "passwords")
    (logs / "old" / "folder").symlink_to("../../secret")
    (logs / "chain").symlink_to("file")
    (logs / "root").symlink_to("/")
    (logs / "beside").symlink_to(logs.parent / "logs2")
    (logs.parent / "logs2").touch()  # its name begins as that of the folder

    files, links = found(logs)

    assert files == [str(logs / "a"), str(logs / "old" / "b")]
    assert sorted(links) == [str(logs / each) for each in ("beside", "chain", "file", "old/folder", "root")]


@pytest.mark.parametrize("pattern", ["*", "**", "**/*", "[a-z]*"])
def test_links_out_of_the_folder_of_a_pattern_are_left_out(logs: Path, pattern: str) -> None:
    (logs / "file").symlink_to(logs.parent / "secret" / "passwords")
    (logs / "folder").symlink_to("../secret")
    (logs / "root").symlink_to(logs.parent)
    files, links = found(logs / pattern)
    assert [os.path.realpath(each) for each in files] == [str(logs / "a"), str(logs / "old" / "b")]
    assert {str(logs / each) for each in ("file", "folder", "root")} <= set(links)


def test_a_path_that_is_no_file_is_left_out_unless_it_is_named(logs: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(logs / "socket"))
    os.mkfifo(logs / "pipe")
    (logs / "broken").symlink_to("nothing")
    files = [str(logs / "a"), str(logs / "old" / "b")]
    assert found(logs) == (files, [])
    assert found(logs / "*") == (files, [])
    assert found(logs / "pipe", logs / "broken") == ([str(logs / "pipe"), str(logs / "broken")], [])


def test_links_that_are_named_or_stay_in_the_folder_are_followed(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (logs / "current").symlink_to("old/b")
    (logs / "up").symlink_to("old")
    (logs / "old" / "back").symlink_to("..")
    assert found(logs) == ([str(logs / each) for each in ("a", "current", "old/b")], [])

    (logs / "file").symlink_to(logs.parent / "secret" / "passwords")
    (logs / "folder").symlink_to(logs.parent / "secret")
    (logs.parent / "secret" / "more").symlink_to(logs / "a")
    files, links = found(logs / "file", logs / "folder")
    assert files == [str(logs / "file"), str(logs / "folder" / "passwords")]
    assert links == [str(logs / "folder" / "more")]

    monkeypatch.chdir(logs)
    for path in (".", "../logs"):
        files, links = found(path)
        assert [Path(each).name for each in files] == ["a", "current", "b"]
        assert sorted(Path(each).name for each in links) == ["file", "folder"]
