"""
What is known of files: how far each is copied, found by how its lines begin.

The fingerprint is made of the first 4 KB of the lines, decompressed, or of all if there are fewer; so a file that
grows, is renamed by rotation, compressed, or moved to another machine is still the same. Whether it goes on as it
was copied, a mark of the bytes before that place tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from components.exceptions import LogsFull, UnknownFormat
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.services.logs.blocks import Place
from components.services.logs.jobs import Keys

_recognise = Script("logs/recognise")

#: Files that are known of a job, at most: some 300 MB of Redis. None is forgotten to make room, since it would be
#: counted again if it came again.
MOST_FILES = 1_000_000
_SHOWN = 200  # bytes of a record that cannot be read
#: What is written down of a file that was read: there may be more of it; that was all; it ends in damage.
FileState = Literal["copying", "done", "damaged"]


@dataclass(frozen=True)
class CopiedFile:
    """A file, as far as it is copied."""

    fingerprint: str
    place: Place
    #: new, copying, done, or damaged; unreadable in a list, where its record is.
    state: str
    #: Its bytes as stored, when it was read to its end.
    size: int
    #: What it was called then.
    name: str

    def was_shorter(self, head: bytes) -> bool:
        """Whether it had less than *head* when it was first seen: so another file may begin like that."""
        return int(self.fingerprint.partition(":")[0]) < len(head)


def recognise(keys: Keys, head: bytes, name: str, *, is_exact: bool = False) -> CopiedFile:
    """
    What is known of the file that begins with *head*; from now on something is.

    It may have been shorter when it was first seen, unless *is_exact*.

    Raises UnknownFormat, and LogsFull if it is new and too many are known.
    """
    client = get_client()
    while True:
        with redis_errors():
            found: Any = client.smembers(keys.heads)
        known = [int(each) for each in found]
        lengths = [each for each in sorted(known, reverse=True) if each < len(head) and not is_exact]
        prints = [fingerprint(head[:length]) for length in (len(head), *lengths, len(head))]
        args = [len(known), len(head), shown(name), MOST_FILES, *prints]
        record = _recognise(client, keys=keys.recognise, args=args)
        if record == [b"full"]:
            raise LogsFull(
                f"{MOST_FILES:,} files of job {keys.job!r} are known, which is the limit, so no new one is copied. "
                "Let copylogs --forget DAYS forget those that are gone."
            )
        if record:
            return copied_file(record[0], record[1])


def fingerprint(head: bytes) -> str:
    return f"{len(head)}:{sha256(head).hexdigest()[:32]}"


def copied_file(name: bytes, record: bytes) -> CopiedFile:
    """Read the *record* of the file with the fingerprint *name*. Raises UnknownFormat."""
    try:
        position, _start, _id, lines, mark, state, size, called = record.split(b" ", 7)
        place = Place(int(position), int(lines), mark.decode())
        if place.window < 0:
            raise ValueError
        return CopiedFile(
            name.decode(), place, state.decode(), int(size), called.decode("utf-8", "surrogateescape")
        )
    except ValueError:
        raise UnknownFormat(
            "What Redis knows of how far the file is copied is in no format that this release knows; nothing of the "
            "file is copied. Let copylogs of the new release copy it."
        ) from None


def known_files(keys: Keys) -> Iterable[CopiedFile]:
    """All files that were copied, in no order; of one whose record cannot be read the state is "unreadable"."""
    with redis_errors():
        for name, record in get_client().hscan_iter(keys.files, count=500):
            try:
                found = copied_file(name, record)
            except UnknownFormat:
                shown = record[-_SHOWN:].decode("utf-8", "backslashreplace")
                found = CopiedFile(name.decode("utf-8", "backslashreplace"), Place(), "unreadable", 0, shown)
            yield found


def shown(name: str) -> bytes:
    """A name of a file may hold any bytes; in a record it is one line."""
    return name.replace("\n", "?").encode("utf-8", "surrogateescape")
