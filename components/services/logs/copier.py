"""
Copier: copies files in chunks. It continues where any producer stopped, and several may copy the same file together.

A process has no state that is not in Redis, too: another process can replace a killed one. It finds each file by its
fingerprint and continues after its last chunk. If another producer was faster, the file is read again from the
position of that one. Files that cannot be read are reported, and the others are copied. While Redis does not answer,
or refuses writes because its disk or memory is full, the copier reports it and tries again.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Literal, TypeVar

from components.exceptions import (
    CopiedElsewhere,
    FileDamaged,
    FileDiffers,
    InvalidValue,
    LogsFull,
    RedisUnavailable,
    UnknownFormat,
)
from components.kit.leases import clock
from components.kit.validation import check_int
from components.services.logs import codec
from components.services.logs.blocks import (
    BIGGEST,
    SIZE,
    SMALLEST,
    BlockReader,
    Problem,
    Tell,
    log_problem,
    mark,
)
from components.services.logs.sources import STDIN, Format, Plain, Source, opened, source_of
from components.services.logs.stream import CopiedFile, LogStream

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: copied: to the end of the file; known: copied before; waiting: all but a last line without a newline; damaged: up
#: to the damage; failed: not at all, or not completely.
Outcome = Literal["copied", "known", "waiting", "damaged", "failed"]
#: Seconds for which to wait while Redis is unavailable.
PATIENCE = 300.0
#: Seconds without a write after which the last line of a file counts although it has no newline. Programs write whole
#: buffers, which end anywhere, and on a quiet night the next one may come hours later.
SETTLED = 86_400.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between two tries, which double


class Copier:
    """
    Copies files into *stream*, in blocks of *size* bytes. Problems with files are passed to *tell*; messages about an
    outage of Redis, and about links that are not followed, to *say*.

    A last line without a newline is not copied yet, because its writer may be in the middle of it. It is copied at
    the end of a pipe, of standard input and of a compressed file, and after a day without writes to the file; at once
    if *complete* is true, which says that no file grows any more.
    """

    def __init__(
        self,
        stream: LogStream,
        *,
        size: int = SIZE,
        format: Format = "auto",
        patience: float = PATIENCE,
        complete: bool = False,
        tell: Tell = log_problem,
        say: Callable[[str], object] = logger.warning,
        progress: Callable[[], object] = lambda: None,
    ) -> None:
        if check_int("size of a chunk in bytes", size, SMALLEST) > BIGGEST:
            raise InvalidValue(f"The size of a chunk is {size:,} bytes; it must be {BIGGEST:,} at most.")
        if stream.limit < (most := codec.most(size)):
            raise InvalidValue(
                f"Only {stream.limit:,} bytes may be in flight, and a chunk of {size:,} bytes may need {most:,} if "
                "it cannot be compressed. Allow more, or make smaller chunks."
            )
        self.stream, self.size, self.format, self.complete = stream, size, format, complete
        self._patience, self._tell, self._say, self._progress = patience, tell, say, progress
        #: Totals of the copied data and of the reported problems.
        self.lines, self.bytes, self.chunks, self.problems = 0, 0, 0, 0
        #: Bytes of files, before decompression, that were processed.
        self.taken = 0

    def copy(self, path: str | os.PathLike[str]) -> Outcome:
        """Copy the part of a file that is not copied yet. Raises RedisUnavailable after *patience* seconds."""
        name, before = os.fspath(path), self.taken
        try:
            with opened(path) as file:
                outcome = self._copy(Copying(self, file, name))
        except OSError as error:
            self.tell(Problem(name, 0, 0, f"cannot be read: {error.strerror or error}"))
            return "failed"
        if outcome == "known":
            self.take(_size(name) + before - self.taken)
        return outcome

    def _copy(self, copying: Copying) -> Outcome:
        while True:
            try:
                if copying.open():
                    copying.go_on()
                    copying.finish()
                    if copying.reader.left:
                        return "waiting"
                return "copied" if copying.has_read else "known"
            except CopiedElsewhere as error:
                if not copying.may_begin_again:
                    self.tell(copying.problem(error, "Data from a pipe cannot be read again."))
                    return "failed"
            except FileDamaged as error:
                self.tell(copying.problem(error))
                if copying.is_known:
                    with suppress(CopiedElsewhere):  # another producer will find the damage as well
                        copying.finish(is_damaged=True)
                return "damaged"
            except (FileDiffers, LogsFull, UnknownFormat) as error:
                self.tell(copying.problem(error))
                return "failed"

    def tell(self, problem: Problem) -> None:
        """Count and report a problem."""
        self.problems += 1
        self._tell(problem)

    def say_left_out(self, link: str) -> None:
        """Report that a *link* is not followed. This is not a problem: the file can be named itself."""
        name = link.replace("\n", "?")
        self._say(
            f"{name} is a link that leads out of its folder, and is left out; name it to have it copied."
        )

    def count(self, lines: int, size: int) -> None:
        self.lines += lines
        self.bytes += size
        self.chunks += 1

    def take(self, size: int) -> None:
        self.taken += size
        self._progress()

    def patiently(self, ask: Callable[[], _T]) -> _T:
        """Return the result of *ask*. Call it again while Redis is unavailable; its calls can be repeated."""
        until, pause, is_told = clock() + self._patience, _FIRST_PAUSE, False
        while True:
            try:
                answer = ask()
            except RedisUnavailable as error:
                if clock() >= until:
                    raise
                if not is_told:
                    is_told = True
                    how_long = "" if self._patience == math.inf else f", for {self._patience:,.0f} s"
                    self._say(f"{error} Nothing is lost; trying again{how_long}.")
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                if is_told:
                    self._say("Redis answers again; copying continues.")
                return answer


class Copying:
    """A file that is being copied."""

    reader: BlockReader
    _source: Source
    #: Bytes of the file, before decompression, when it was opened.
    _size: int
    _known: CopiedFile
    _look: Callable[[], CopiedFile]

    def __init__(self, copier: Copier, file: BinaryIO, name: str) -> None:
        self._copier, self._file, self._name = copier, file, name
        #: A pipe cannot be read again, so its lines are not recognised.
        self.may_begin_again = stat.S_ISREG(os.fstat(file.fileno()).st_mode) and name != STDIN
        self._told = 0
        self._is_read = False
        #: Whether something was copied, or left out.
        self.has_read = False
        #: Whether Redis knows how far it is copied.
        self.is_known = False

    def open(self, *, is_exact: bool = False) -> bool:
        """
        Go to the place up to which the file is copied. Return False if there is nothing to do. The file may be opened
        again. A short file is recognised by all of its bytes. Another file may begin with the same bytes and go on
        differently; that one is a new file. Raises FileDiffers, FileDamaged, OSError.
        """
        copier = self._copier
        if self.may_begin_again:
            self._file.seek(0)
        copier.take(-self._told)
        self._told = 0
        self._size = os.fstat(self._file.fileno()).st_size if self.may_begin_again else 0
        self._source = source_of(self._file, copier.format)
        self.reader = BlockReader(self._source, name=self._name, size=copier.size, tell=copier.tell)
        self._is_read, self.is_known = True, False
        head = self.reader.head() if self.may_begin_again else secrets.token_bytes(16)
        if not head:
            return False
        self._look = partial(copier.stream.recognise, head, self._name, is_exact=is_exact)
        self._known = copier.patiently(self._look)
        self.is_known = True
        if self._is_done():
            return False
        try:
            self.reader.go_to(self._known.place)
        except FileDiffers:
            if is_exact or not self._known.was_shorter(head):
                raise
            return self.open(is_exact=True)
        if self._known.state == "new" and isinstance(self._source, Plain) and (zeros := self._source.start):
            copier.tell(self.problem(f"it begins with {zeros:,} NUL bytes, which are left out"))
        return True

    def _is_done(self) -> bool:
        """Return True for a compressed file that was read to its end: it need not be read again."""
        is_compressed = not isinstance(self._source, Plain)
        size = os.fstat(self._file.fileno()).st_size
        return is_compressed and self._known.state == "done" and self._known.size == size

    def keep(self) -> None:
        """Record in Redis that the file still exists, so that it is not forgotten."""
        if self.is_known:
            self._copier.patiently(self._look)

    def go_on(self, *, is_final: bool = False) -> None:
        """
        Copy the lines; a last line without a newline only if *is_final*, or if the file is complete. Raises
        CopiedElsewhere, FileDamaged, OSError.
        """
        self._copy_blocks(is_final=is_final)
        if not is_final and self.reader.left and self.is_complete():
            self._copy_blocks(is_final=True)
        self.has_read |= self.reader.place.position > self._known.place.position
        self._tell_taken()

    def _copy_blocks(self, *, is_final: bool) -> None:
        while (block := self.reader.next(is_final=is_final)) is not None:
            append = partial(self._copier.stream.append, self._known.fingerprint, block, name=self._name)
            self._copier.patiently(append)
            self.has_read = True
            self._copier.count(block.lines, len(block.data))
            self._tell_taken()

    def is_complete(self) -> bool:
        """Return True if a file that was read to its end will not grow, so that its last line needs no newline."""
        if not self.may_begin_again or not isinstance(self._source, Plain) or self._copier.complete:
            return True
        about = os.fstat(self._file.fileno())
        # The time of the file is by this machine's clock, not by that of Redis.
        is_read = about.st_size == self._source.taken + self._source.padding
        return is_read and time.time() - about.st_mtime >= SETTLED

    def finish(self, *, is_damaged: bool = False) -> None:
        """
        Record how far the file was read. It is done if this is its whole size. Raises FileDiffers if the file became
        shorter meanwhile, and FileDamaged if it ended before all bytes that it had when it was opened were read.
        """
        size = os.fstat(self._file.fileno()).st_size if self.may_begin_again else self._source.taken
        taken = self._source.taken + self._source.padding
        finish = partial(
            self._copier.stream.finish,
            self._known.fingerprint,
            self.reader.place,
            after=self.reader.after,
            name=self._name,
            size=self._source.taken,
            state="damaged"
            if is_damaged
            else "done"
            if size == taken and not self.reader.left
            else "copying",
        )
        self._copier.patiently(finish)
        if is_damaged:
            return
        if size < self._source.taken:
            raise FileDiffers(f"it became shorter while it was read, and has {size:,} bytes now")
        if taken < self._size:
            raise FileDamaged(
                f"it ended after {taken:,} of its {self._size:,} bytes: the rest could not be read"
            )

    def fits(self) -> bool:
        """Return whether a plain file still has the bytes that were read, and was not truncated and rewritten."""
        place = self.reader.place
        if os.fstat(self._file.fileno()).st_size < self._source.taken or not isinstance(self._source, Plain):
            return False
        at = self._source.start + place.position - place.window
        return mark(os.pread(self._file.fileno(), place.window, at)) == place.mark

    def problem(self, reason: str | Exception, *more: str) -> Problem:
        """Return a problem at the current place; at line 0 if nothing of the file could be read."""
        if isinstance(reason, OSError):
            reason = f"cannot be read: {reason.strerror or reason}"
        elif isinstance(reason, FileDamaged):
            reason = str(reason.__cause__ or reason)  # without the place, which the problem has anyway
        place = self.reader.place if self._is_read else None
        at = (place.lines + 1, place.position) if place else (0, 0)
        return Problem(self._name, *at, " ".join([str(reason), *more]))

    def _tell_taken(self) -> None:
        self._copier.take(self._source.taken - self._told)
        self._told = self._source.taken


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size  # noqa: PTH116  (it may be "-", which is no path)
    except OSError:
        return 0
