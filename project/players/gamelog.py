"""
The files of the game's log: one, compressed, for each day that is over, and one that grows and is rotated.

The file of a day gets its name when it is complete, and is never written again: if a process is killed, the next one
makes only the files that are missing. The growing file is renamed when it is large, and its readers handle that by
themselves.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from os import SEEK_END
from pathlib import Path
from random import Random

from .crowd import MOMENTS, Crowd

NAME = "game.log"
#: Days before today: two weeks, and two more weeks for comparison.
DAYS = 28
#: Lines of a usual day, before today and while the game server runs.
A_DAY = 100_000
#: Bytes of the growing file, and how many old files are kept beside it.
_SIZE = 4 * 1024 * 1024
_KEPT = 3


def make_past(folder: Path, crowd: Crowd, now: datetime, *, lines: int = A_DAY) -> None:
    """
    Write the missing files of the last days, and of today until *now*, with that many *lines* on a usual day. Delete
    older files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    days = [now.date() - timedelta(days=ago) for ago in reversed(range(DAYS + 1))]
    paths = {folder / f"game-{day}.log.gz": day for day in days}
    for old in set(folder.glob("game-*.log.gz")) - paths.keys():
        old.unlink()
    for path, day in paths.items():
        if not path.exists():
            # Programs that follow the folder must not see incomplete files.
            part = folder.with_name(f"{folder.name}.part")
            part.write_bytes(gzip.compress(_day(crowd, day, now, lines), compresslevel=1))
            part.rename(path)


def _day(crowd: Crowd, day: date, now: datetime, lines: int) -> bytes:
    rng = Random(str(day))
    written: list[str] = []
    for hour in (datetime.combine(day, time(number, tzinfo=UTC)) for number in range(24)):
        seconds = min(int((now - hour).total_seconds()), len(MOMENTS))
        if seconds <= 0:
            break
        count = round(lines / 24 * crowd.activity(hour) * seconds / len(MOMENTS))
        moments = sorted(rng.choices(MOMENTS[:seconds], k=count))
        written += crowd.lines(hour, moments, rng)
    return _encoded(written)


class GameLog:
    """The growing file in *folder*. It is renamed at *size* bytes, and *kept* old files stay beside it."""

    def __init__(self, folder: Path, *, size: int = _SIZE, kept: int = _KEPT) -> None:
        self._path, self._size, self._kept = folder / NAME, size, kept
        self._open()
        if self._written and not self._is_whole():
            self._file.write(b"\n")  # a process was killed in the middle of a line

    def write(self, lines: Sequence[str]) -> None:
        data = _encoded(lines)
        self._file.write(data)
        self._written += len(data)
        if self._written >= self._size:
            self._rotate()

    def close(self) -> None:
        self._file.close()

    def _open(self) -> None:
        self._file = self._path.open("a+b", buffering=0)
        self._written = self._file.tell()

    def _is_whole(self) -> bool:
        self._file.seek(-1, SEEK_END)
        return self._file.read() == b"\n"

    def _rotate(self) -> None:
        self.close()
        older = [self._path.with_name(f"{NAME}.{number}") for number in range(self._kept, 0, -1)]
        for new, path in pairwise([*older, self._path]):
            if path.exists():
                path.replace(new)
        self._open()


def _encoded(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
