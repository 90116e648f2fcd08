"""
Blocks: whole lines of a file, a few megabytes at a time, and their positions in the file.

A line that is longer than a block is left out and reported. If a file cannot be read any further, it ends there, like
a damaged one. A reader can continue where another one ended: a place is a byte of the decompressed lines, the number
of lines before it, and a mark of the bytes before it, which shows whether the file is still the same.
"""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from components.exceptions import FileDamaged, FileDiffers
from components.kit.validation import check_int
from components.services.logs.sources import Format, Source, opened, source_of

logger = logging.getLogger(__name__)

#: Bytes of a block by default, and so of the longest line.
SIZE = 1024 * 1024
SMALLEST, BIGGEST = 1024, 16 * 1024 * 1024
#: Bytes at the beginning of a file by which it is recognised, and before a place from which its mark is made.
HEAD = 4096


@dataclass(frozen=True)
class Block:
    """Whole lines; only the last line of a file may have no newline."""

    data: bytes
    #: The end of the previous block: less than *start* if lines in between were left out.
    after: int
    #: Where the lines begin among the decompressed lines of the file.
    start: int
    #: The number of the first line, from 1 on.
    line: int
    #: The number of lines.
    lines: int
    #: The mark of a place at the end of the block.
    mark: str

    @property
    def end(self) -> int:
        return self.start + len(self.data)


@dataclass(frozen=True)
class Place:
    """A position in a file from which to continue."""

    position: int = 0
    #: The number of lines before it.
    lines: int = 0
    mark: str = "-"

    @property
    def window(self) -> int:
        """Return how many bytes before the place the mark is made of."""
        return int(self.mark.partition(":")[0]) if self.mark != "-" else 0


@dataclass(frozen=True)
class Problem:
    """Something in a file that could not be read."""

    name: str
    line: int
    #: The position in the decompressed lines.
    byte: int
    reason: str

    def __str__(self) -> str:
        name = self.name.replace("\n", "?")  # one problem is one line
        return f"{name}, line {self.line:,}, byte {self.byte:,}: {self.reason}"


Tell = Callable[[Problem], object]


def log_problem(problem: Problem) -> None:
    logger.warning("%s", problem)


class BlockReader:
    """Reads *source* in blocks, and calls *tell* for each line that is left out."""

    def __init__(self, source: Source, *, name: str, size: int = SIZE, tell: Tell = log_problem) -> None:
        self._source, self._name, self._tell = source, name, tell
        self._size = check_int("size of a block in bytes", size, SMALLEST)
        self._buffer, self._tail = b"", b""
        self._failure: FileDamaged | None = None
        #: The beginning of the line that is being left out.
        self._skips_from: Place | None = None
        #: The position up to which the file was read, the end of the last block, and the number of lines before that.
        self.position, self.after, self._lines = 0, 0, 0

    @property
    def place(self) -> Place:
        """Return the place up to which all lines were handed out, or left out entirely."""
        return self._skips_from or Place(self.position, self._lines, mark(self._tail))

    @property
    def left(self) -> int:
        """Return how many bytes were read but not handed out or left out: those of a last line without a newline."""
        return len(self._buffer) + (self.position - self._skips_from.position if self._skips_from else 0)

    def head(self) -> bytes:
        """Return the first bytes. Call this before any other method. Raises FileDamaged if they cannot be read."""
        while len(self._buffer) < HEAD and self._fill(HEAD):
            pass
        if not self._buffer:
            self._raise_failure()
        return self._buffer[:HEAD]

    def go_to(self, place: Place) -> None:
        """Continue at *place*. Raises FileDamaged; FileDiffers if the file is not the same before the place."""
        window, left = place.window, place.position
        if left > window and self._source.skip(left - window):
            self._buffer, self.position, left = b"", left - window, window
        while left:
            if not self._buffer and not self._fill(self._size):
                self._raise_failure()
                self._stand_at(place)
                raise FileDiffers(
                    f"{self._name} is shorter than the {place.position:,} bytes that were copied of it: "
                    "it was cut off, or is another file that begins alike. Nothing more of it is copied."
                )
            gone, self._buffer = self._buffer[:left], self._buffer[left:]
            self._remember(gone)
            self._lines += gone.count(b"\n")
            left -= len(gone)
        self._stand_at(place)
        if window and mark(self._tail) != place.mark:
            raise FileDiffers(
                f"{self._name} begins like a file that was copied up to byte {place.position:,}, but differs from it "
                "before that byte: it was changed, or is another file. Nothing more of it is copied."
            )

    def _stand_at(self, place: Place) -> None:
        self.position = self.after = place.position
        self._lines = place.lines

    def next(self, *, is_final: bool = True) -> Block | None:
        """
        Return the next lines, or None if there are none. If *is_final*, a last line without a newline counts as one.
        Raises FileDamaged after everything before the damage was handed out.
        """
        while True:
            has_more = self._fill_up()
            is_end = not has_more and is_final and not self._failure
            if self._skips_from and (self._skip(at_end=is_end) or has_more):
                continue  # the buffer has room again, and the following lines may not be in it yet
            whole = self._buffer.rfind(b"\n", 0, self._size) + 1
            if not whole and has_more:
                self._begin_to_skip()
                continue
            if is_end:
                whole = len(self._buffer)
            if whole:
                return self._cut(whole)
            # The source has ended, so there are no more lines.
            self._raise_failure()
            return None

    def _fill_up(self) -> bool:
        """Read until a block is full. Return False if the source ended before that."""
        while len(self._buffer) < self._size:
            if not self._fill(self._size - len(self._buffer)):
                return False
        return True

    def _raise_failure(self) -> None:
        if self._failure:
            raise self._told(self._failure) from self._failure

    def _fill(self, size: int) -> bool:
        """Read more into the buffer. Return False if there is nothing more."""
        if self._failure:
            return False
        try:
            found = self._source.read(size)
        except FileDamaged as error:
            self._failure = error
            return False
        except OSError as error:
            self._failure = FileDamaged(f"it cannot be read any further: {error.strerror or error}")
            return False
        self._buffer = self._buffer + found if self._buffer else found
        return bool(found)

    def _cut(self, length: int) -> Block:
        data, self._buffer = self._buffer[:length], self._buffer[length:]
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        after, start, line = self.after, self.position, self._lines + 1
        self._remember(data)
        self.after = self.position
        self._lines += lines
        return Block(data, after, start, line, lines, mark(self._tail))

    def _begin_to_skip(self) -> None:
        self._skips_from = self.place
        self._tell(
            Problem(
                self._name,
                self._lines + 1,
                self.position,
                f"the line is longer than a chunk ({self._size:,} bytes) and is left out",
            )
        )

    def _skip(self, *, at_end: bool) -> bool:
        """Skip the bytes of a line that is too long. Return True if the line has ended."""
        end = self._buffer.find(b"\n") + 1
        gone = self._buffer[: end or len(self._buffer)]
        self._buffer = self._buffer[len(gone) :]
        self._remember(gone)
        if end or at_end:
            self._skips_from = None
            self._lines += 1
            return True
        return False

    def _remember(self, data: bytes) -> None:
        self.position += len(data)
        self._tail = data[-HEAD:] if len(data) >= HEAD else (self._tail + data)[-HEAD:]

    def _told(self, failure: FileDamaged) -> FileDamaged:
        at = self.place
        return FileDamaged(
            f"{self._name}, line {at.lines + 1:,}, byte {at.position:,}: {failure}. Everything before this was read."
        )


def readblocks(
    path: str | os.PathLike[str],
    *,
    size: int = SIZE,
    format: Format = "auto",
    place: Place | None = None,
    tell: Tell = log_problem,
) -> Iterator[Block]:
    """
    Yield the lines of a file, plain, gzip or zstd, in blocks of about *size* bytes; "-" is standard input. Begin at
    *place*. A line longer than *size* is left out, and *tell* is called. Raises FileDamaged after everything that can
    be read, FileDiffers if *place* is of another file, and OSError.
    """
    with opened(path) as file:
        reader = BlockReader(source_of(file, format), name=os.fspath(path), size=size, tell=tell)
        if place is not None:
            reader.go_to(place)
        while (block := reader.next()) is not None:
            yield block


def readlines(
    path: str | os.PathLike[str], *, size: int = SIZE, format: Format = "auto", tell: Tell = log_problem
) -> Iterator[bytes]:
    """Yield the lines of a file without their ends, read as by readblocks(). Only \\n ends a line."""
    for block in readblocks(path, size=size, format=format, tell=tell):
        lines = block.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        yield from lines


def mark(tail: bytes) -> str:
    """Return the mark of the bytes before a place."""
    return f"{len(tail)}:{sha256(tail).hexdigest()[:16]}" if tail else "-"
