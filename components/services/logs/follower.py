"""
Follower: copies files as they grow, within about a second, including rotated ones.

An open file is identified by its inode. A renamed file is read until nothing more comes, because its writer may not
have noticed yet; the new file with its name is read at the same time. A truncated file (copytruncate) is read from
the beginning. A line is copied when it has its newline; the last line also when its file is gone, or after a day
without writes to it. If this process dies, the next one reads the rest.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from components.exceptions import CopiedElsewhere, FileDamaged, FileDiffers, LogsFull, UnknownFormat
from components.kit.leases import clock
from components.services.logs.blocks import Problem
from components.services.logs.copier import Copier, Copying
from components.services.logs.paths import find_files
from components.services.logs.sources import Plain, source_of

#: Seconds from one check to the next.
PAUSE = 1.0
#: Seconds without growth after which a file that is no longer at its path is closed.
QUIET = 10.0
#: Seconds after which Redis is told that a file that does not grow still exists: less than the shortest time for
#: which files are remembered.
KEPT = 3_600.0

_Inode = tuple[int, int]
_State = tuple[int, int]


class Follower:
    """Copies with *copier* the files to which *paths* lead, now and later."""

    def __init__(self, copier: Copier, paths: Sequence[str], *, quiet: float = QUIET) -> None:
        self._copier, self._paths, self._quiet = copier, paths, quiet
        self._open: dict[_Inode, _Growing] = {}
        #: Size and time of the last change of files at the last check, and of files when they were copied or refused.
        self._seen: dict[_Inode, _State] = {}
        self._done: dict[_Inode, _State] = {}
        #: Links that were left out at the last check.
        self._links: set[str] = set()

    def look(self) -> None:
        """Copy the lines that have come since the last check. Raises RedisUnavailable."""
        present = set[_Inode]()
        links = set[str]()
        for path in find_files(self._paths, tell=links.add):
            with suppress(FileNotFoundError):  # not created yet, or just rotated
                self._look_at(path, present)
        for link in sorted(links - self._links):
            self._copier.say_left_out(link)
        self._links = links
        for inode, growing in list(self._open.items()):
            if not growing.go_on(is_there=inode in present, quiet=self._quiet):
                self._open.pop(inode).close()
        self._seen = {inode: about for inode, about in self._seen.items() if inode in present}
        self._done = {inode: about for inode, about in self._done.items() if inode in present}

    def close(self) -> None:
        for growing in self._open.values():
            growing.close()
        self._open.clear()

    def _look_at(self, path: str, present: set[_Inode]) -> None:
        about = os.stat(path)  # noqa: PTH116  (as it was given, for messages)
        inode, state = (about.st_dev, about.st_ino), _state_of(about)
        present.add(inode)
        before, self._seen[inode] = self._seen.get(inode), state
        if inode in self._open or self._done.get(inode) == state or not about.st_size:
            return
        try:
            self._take(path, inode, is_still=before == state)
        except FileNotFoundError:
            raise
        except OSError as error:
            self._done[inode] = state
            self._copier.tell(Problem(path, 0, 0, f"cannot be followed: {error.strerror or error}"))

    def _take(self, path: str, inode: _Inode, *, is_still: bool) -> None:
        """Open a plain file to follow it. Copy a compressed file when it does not grow any more."""
        with ExitStack() as closing:
            file = closing.enter_context(Path(path).open("rb", buffering=0))
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise OSError(f"{path} is not a file")
            if (about.st_dev, about.st_ino) != inode:
                return
            if isinstance(source_of(file, self._copier.format), Plain):
                self._open[inode] = _Growing(self._copier, file, path)
                closing.pop_all()  # keeps the file open
            elif is_still:
                self._done[inode] = _state_of(about)
                self._copier.copy(path)


def _state_of(about: os.stat_result) -> _State:
    """Return the size, and when anything last changed, the permissions included."""
    return about.st_size, about.st_ctime_ns


class _Growing:
    def __init__(self, copier: Copier, file: BinaryIO, name: str) -> None:
        self._copier, self._file, self._name = copier, file, name
        self._copying = Copying(copier, file, name)
        self._is_begun = False
        self._state: _State | None = None
        self._refusal = ""  # why it was refused when it last changed
        self._grew_at = self._told_at = clock()

    def go_on(self, *, is_there: bool, quiet: float) -> bool:
        """
        Copy new lines. Return False if no more will come, because the file is gone and was *quiet* for long enough.
        A file that is refused is tried again when it has changed.
        """
        state = _state_of(os.fstat(self._file.fileno()))
        has_changed, self._state = state != self._state, state
        if has_changed:
            self._grew_at = clock()
        is_over = not is_there and clock() - self._grew_at >= quiet
        is_settled = self._is_begun and bool(self._copying.reader.left) and self._copying.is_complete()
        if has_changed or ((is_over or is_settled) and not self._refusal):
            try:
                self._copy(is_final=is_over)
                self._refusal = ""
            except (FileDiffers, FileDamaged, LogsFull, UnknownFormat, OSError) as error:
                self._is_begun = False
                if self._refusal != str(error):
                    self._refusal = str(error)
                    self._copier.tell(self._copying.problem(error))
        if is_there and clock() - self._told_at >= KEPT:
            self._told_at = clock()
            self._copying.keep()
        return not is_over

    def close(self) -> None:
        self._file.close()

    def _copy(self, *, is_final: bool) -> None:
        if self._is_begun and not self._copying.fits():
            if lost := self._copying.reader.left:
                self._copier.tell(self._copying.problem(f"it was cut off after {lost:,} bytes of a line"))
            self._is_begun = False
        while True:
            try:
                self._is_begun = self._is_begun or self._copying.open()
                if self._is_begun:
                    self._copying.go_on(is_final=is_final)
                return
            except CopiedElsewhere:
                self._is_begun = False
