"""
Sources: the decompressed bytes of a file, a limited number at a time.

The first bytes of a file tell what it is, whatever its name: gzip, zstd, plain lines, or something that is not read
and raises FileDamaged. A gzip file may have several members, like logs that were compressed and appended; the
checksum of each is checked. Damage raises FileDamaged after everything that can be read was read. A reader holds a
few megabytes, however far a file expands.
"""

from __future__ import annotations

import os
import re
import select
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from components.exceptions import FileDamaged
from components.services.logs.codec import MAGIC, zstandard

Format = Literal["auto", "plain"]
#: The file that is standard input.
STDIN = "-"

_GZIP_MAGIC = b"\x1f\x8b"
#: zstd skips such frames; pzstd begins with one.
_SKIPPED = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
#: How files begin that are not read, what they are, and what makes lines of them.
_NOT_READ = tuple(
    (re.compile(beginning, re.DOTALL), what, command)
    for beginning, what, command in (
        (rb"\xfd7zXZ\0|\x5d\0\0", "compressed by xz", "xz -dc FILE"),
        (rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)", "compressed by bzip2", "bzip2 -dc FILE"),
        (rb"\x04\x22\x4d\x18|\x02\x21\x4c\x18", "compressed by lz4", "lz4 -dc FILE"),
        (rb"LZIP\x01", "compressed by lzip", "lzip -dc FILE"),
        (rb"\x89LZO\0", "compressed by lzop", "lzop -dc FILE"),
        (rb"\xff\x06\0\0sNaPpY", "compressed by snappy", "snzip -dc FILE"),
        (rb"\x1f[\x9d\xa0\x1e]", "compressed by compress", "gzip -dc FILE"),
        (rb"\x1f\x8b", "compressed twice", "gzip -dc FILE"),
        (rb"\x28\xb5\x2f\xfd|" + _SKIPPED.pattern, "compressed twice", "zstd -dc FILE"),
        (rb"PK(?:\x03\x04|\x05\x06)", "a zip archive", "unzip -p FILE"),
        (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "7z x -so FILE"),
        (rb"Rar!\x1a\x07", "a RAR archive", "unrar p -inul FILE"),
        (rb".{257}ustar", "a tar archive", "tar -xOf FILE"),
        (rb"\xff\xfe\0\0|\0\0\xfe\xff", "UTF-32", "iconv -f UTF-32 -t UTF-8 FILE"),
        (rb"\xff\xfe|\xfe\xff", "UTF-16", "iconv -f UTF-16 -t UTF-8 FILE"),
        (rb"(?:[ -~]\0){2}", "UTF-16", "iconv -f UTF-16LE -t UTF-8 FILE"),
        (rb"(?:\0[ -~]){2}", "UTF-16", "iconv -f UTF-16BE -t UTF-8 FILE"),
        (rb"LPKSHHRH", "a journal of systemd", "journalctl --file FILE -o json"),
        (rb"PAR1\x15", "a file of Parquet", "duckdb -csv -c \"FROM 'FILE'\""),
    )
)
#: Characters that no text has, of which a line of a log may show a few.
_CONTROLS = bytes({*range(9), *range(14, 27), *range(28, 32), 127})
_LOOKED_AT = 1024  # bytes
_WIDE = 4  # bytes: so many NULs and more are no part of a character
_READ = 256 * 1024  # bytes of a compressed file at a time
_SLICE = 1024  # bytes fed to zstd at a time: they can expand to 32 MB, not more
_GZIP = 31  # zlib's number for members with header and checksum


class Source(Protocol):
    """Something to read from."""

    #: The number of bytes of the file, as it is stored, that were read.
    taken: int
    #: The number of NUL bytes after these, up to the end of the file: a writer may still fill them.
    padding: int

    def read(self, size: int) -> bytes:
        """
        Return at most about *size* bytes, and none only at the end. Wait if there is nothing yet and it is not the
        end, as in a pipe. Raises FileDamaged and OSError.
        """

    def skip(self, count: int) -> bool:
        """Go to *count* bytes from the beginning without reading. Return False if that is not possible."""


def refuse(beginning: bytes) -> None:
    """Raise FileDamaged if lines cannot begin like this."""
    for pattern, what, command in _NOT_READ:
        if pattern.match(beginning):
            raise FileDamaged(f"it is {what}, which is not read. Use `{command} | manage.py copylogs -`")
    first = beginning.rstrip(b"\0")[:_LOOKED_AT]
    if (controls := len(first) - len(first.translate(None, _CONTROLS))) > 4 + len(first) // 10:
        raise FileDamaged(
            f"it is no text: {controls:,} of its first {len(first):,} bytes are control characters. If there are "
            "lines in it, use `manage.py copylogs --format plain FILE`"
        )


class Plain:
    """
    Bytes as they are. In a file, NUL bytes at its beginning are passed over: a writer leaves them that goes on at its
    old place after the file was cut. Those at its end are not read yet: a writer fills them that has reserved space.
    """

    def __init__(self, file: BinaryIO, head: bytes, *, is_anything: bool = False) -> None:
        self._file, self._head, self._is_anything = file, head, is_anything
        #: How many bytes are passed over.
        self.start = self.taken = self.padding = 0
        self._is_file = file.seekable()
        self._sure = 0  # up to where no NUL bytes are at the end of the file
        if self._is_file:
            self._origin = file.seek(-len(head), os.SEEK_CUR)
            self._head = b""
            if head.startswith(b"\0"):
                self.start = self.taken = self._end_of_zeros(0) or 0
                file.seek(self._origin + self.start)

    def read(self, size: int) -> bytes:
        if self._head:
            found, self._head = self._head[:size], self._head[size:]
        else:
            found = _read(self._file, size)
        if self.taken == self.start and not self._is_anything:
            refuse(bytes(self.start) + found if self.start < _WIDE else found)
        self.padding = 0
        if self._is_file and found.endswith(b"\0") and self.taken + len(found) > self._sure:
            found = self._without_padding(found)
        self.taken += len(found)
        return found

    def _without_padding(self, found: bytes) -> bytes:
        """Return *found* without the NUL bytes at its end, if there are only such bytes up to the end of the file."""
        after = self._end_of_zeros(self.taken + len(found))
        if after is None:
            found = found.rstrip(b"\0")
            self.padding = self._file.tell() - self._origin - self.taken - len(found)
        else:
            self._sure = after
        self._file.seek(self._origin + self.taken + len(found))
        return found

    def _end_of_zeros(self, at: int) -> int | None:
        """Return where the first byte from *at* on is that is not NUL; None if there is none up to the end."""
        self._file.seek(self._origin + at)
        while piece := _read(self._file, _READ):
            if data := piece.lstrip(b"\0"):
                return at + len(piece) - len(data)
            at += len(piece)
        return None

    def skip(self, count: int) -> bool:
        if self._is_file:
            self.taken = self.start + count
            self._file.seek(self._origin + self.taken)
        return self._is_file


class _Compressed:
    """Reads a compressed file piece by piece, and takes back what was not used of a piece."""

    padding = 0
    _is_begun = False

    def __init__(self, file: BinaryIO, head: bytes) -> None:
        self._file, self._rest = file, head
        self.taken = 0

    def read(self, size: int) -> bytes:
        found = self._expand(size)
        if not self._is_begun:
            refuse(found)
            self._is_begun = True
        return found

    def _expand(self, size: int) -> bytes:
        raise NotImplementedError

    def _piece(self) -> bytes:
        found, self._rest = self._rest or _read(self._file, _READ), b""
        self.taken += len(found)
        return found

    def _put_back(self, rest: bytes) -> None:
        self._rest = rest + self._rest
        self.taken -= len(rest)

    def skip(self, count: int) -> bool:
        return False

    def _damaged(self, what: str) -> FileDamaged:
        return FileDamaged(f"{what} (byte {self.taken:,} of the file)")


class Gzip(_Compressed):
    """One member after another."""

    _member: zlib._Decompress | None = None
    _count = 0
    _failed: FileDamaged | None = None

    def _expand(self, size: int) -> bytes:
        while True:
            if self._failed:
                raise self._failed
            if self._member is None and not self._begin():
                return b""
            assert self._member is not None
            data = self._member.unconsumed_tail or self._piece()
            if not data:
                if found := self._member.decompress(b"", size):  # what zlib had no room for before
                    return found
                raise self._damaged(f"gzip member {self._count} ends too early")
            before = self._member.copy()
            try:
                found = self._member.decompress(data, size)
            except zlib.error as error:
                self._failed = self._damaged(f"gzip member {self._count} is damaged: {error}")
                if found := _before_damage(before, data):
                    return found
                continue
            if self._member.eof:
                self._put_back(self._member.unused_data)
                self._member = None
            if found:
                return found

    def _begin(self) -> bool:
        """Begin the next member, after zeros that tapes and block devices leave. Return False at the end."""
        data = b""
        while not data and (piece := self._piece()):
            data = piece.lstrip(b"\0") if self._count else piece
        if not data:
            return False
        self._put_back(data)
        if len(data) > 1 and not data.startswith(_GZIP_MAGIC):
            raise self._damaged(f"gzip member {self._count} is followed by something else")
        self._member = zlib.decompressobj(_GZIP)
        self._count += 1
        return True


def _before_damage(member: zlib._Decompress, data: bytes) -> bytes:
    """Return what *data* expand to before the damage, which zlib does not return when it finds the damage."""
    found = []
    with suppress(zlib.error):
        for at in range(len(data)):
            found.append(member.decompress(data[at : at + 1]))
    return b"".join(found)


class Zstd(_Compressed):
    """One frame after another."""

    def __init__(self, file: BinaryIO, head: bytes) -> None:
        super().__init__(file, head)
        package = zstandard()
        self._error: type[Exception] = package.ZstdError
        self._decompressor = package.ZstdDecompressor()
        self._frame = self._decompressor.decompressobj()
        self._is_inside = False
        self._failed: FileDamaged | None = None

    def _expand(self, size: int) -> bytes:
        found: list[bytes] = []
        length = 0
        while length < size and not self._failed and (data := self._piece()):
            part = memoryview(data)
            while part and length < size and not self._failed:
                for lines in self._feed(bytes(part[:_SLICE])):
                    found.append(lines)
                    length += len(lines)
                part = part[_SLICE:]
            self._put_back(bytes(part))
        if not length and self._failed:
            raise self._failed
        if not length and self._is_inside:
            raise self._damaged("a zstd frame ends too early")
        return b"".join(found)

    def _feed(self, data: bytes) -> Iterator[bytes]:
        """
        Yield what *data* expand to. A damaged frame yields nothing; the read that has nothing else to return raises.
        Zeros after a frame, which tapes and block devices leave, are passed over.
        """
        while data := data if self._is_inside else data.lstrip(b"\0"):
            try:
                yield self._frame.decompress(data)
            except self._error as error:
                self._failed = self._damaged(f"a zstd frame is damaged: {error}")
                return
            data = self._frame.unused_data if self._frame.eof else b""
            self._is_inside = not self._frame.eof
            if self._frame.eof:
                self._frame = self._decompressor.decompressobj()


def source_of(file: BinaryIO, format: Format = "auto") -> Source:
    """Return the source that reads *file*, which must be at its beginning."""
    head = _first(file, 4)
    if format == "auto" and head.startswith(_GZIP_MAGIC):
        return Gzip(file, head)
    if format == "auto" and (head == MAGIC or _SKIPPED.match(head)):
        return Zstd(file, head)
    return Plain(file, head, is_anything=format == "plain")


def _first(file: BinaryIO, count: int) -> bytes:
    head = b""
    while len(head) < count and (more := _read(file, count - len(head))):
        head += more
    return head


def _read(file: BinaryIO, size: int) -> bytes:
    """
    Read at most *size* bytes; none only at the end. Standard input may be non-blocking, since any process that shares
    it can make it so. Then read() returns None if nothing has come yet, which is not the end.
    """
    read: Callable[[int], bytes | None] = file.read
    while (found := read(size)) is None:
        select.select([file], [], [])
    return found


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file, unbuffered; "-" is standard input. Raises OSError, also if it is neither a file nor a pipe."""
    if os.fspath(path) == STDIN:
        with open(0, "rb", buffering=0, closefd=False) as file:
            yield file
        return
    with Path(path).open("rb", buffering=0) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise OSError(f"{os.fspath(path)} is neither a file nor a pipe")
        yield file
