"""
LogStream: producers put chunks of logs into it for aggregations to count. The bytes in flight are limited.

A chunk is a few megabytes of whole lines, compressed, in a string of its own, and a descriptor of it in a stream.

A producer that finds no room waits on a list, and each consumer that frees a chunk puts a token into this list. The
token is a hint and carries no data: the producer that is woken tries again, and looks every few seconds anyway. If no
aggregation has joined, chunks wait for the first one.

A file is recognised by a fingerprint of the first 4 KB of its lines, decompressed, or of all if there are fewer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from components.exceptions import ChunkTooLarge, CopiedElsewhere, LogsFull, UnknownFormat
from components.kit.client import SHORTEST_BLOCK, get_client, longest_block
from components.kit.errors import ended_early, redis_errors
from components.kit.leases import clock
from components.kit.lua_headers import record
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.kit.validation import check_int, check_seconds
from components.services.logs import codec
from components.services.logs.blocks import Block, Place
from components.services.logs.jobs import DEFAULT_JOB, note_job
from components.services.logs.keys import JobKeys

APPEND, FINISH = Script("logs/append"), Script("logs/finish")
RECOGNISE, FORGET = Script("logs/recognise"), Script("logs/forget")
FILE = record("logs", "file")

#: Bytes in flight, compressed: usually a quarter of the lines.
LIMIT = 256 * 1024 * 1024
#: The largest number of files that are known of a job, which take some 300 MB of Redis. No file is forgotten to make
#: room, since it would be counted again if it came again.
MOST_FILES = 1_000_000
_PAGE = 1_000  # files that one script forgets, a millisecond or two of the server
_SHOWN = 200  # bytes of a record that cannot be read
#: The states of a file that was read: there may be more of it; that was all; or it ends in damage.
FileState = Literal["copying", "done", "damaged"]


@dataclass(frozen=True)
class LogStatus:
    """What a job has in Redis, and what went through it."""

    #: In flight, compressed.
    bytes: int
    chunks: int
    #: Copied since the beginning.
    lines: int
    raw_bytes: int
    #: Lines that were left out because they are longer than a chunk.
    skipped: int


@dataclass(frozen=True)
class CopiedFile:
    """A file, as far as it is copied."""

    fingerprint: str
    place: Place
    #: new, copying, done, or damaged; in a list also unreadable, if its record is.
    state: str
    #: Its bytes as stored, when it was read to its end.
    size: int
    #: The name that it had then.
    name: str

    def was_shorter(self, head: bytes) -> bool:
        """Return True if the file was shorter than *head* when it was first seen, so others may begin alike."""
        return int(self.fingerprint.partition(":")[0]) < len(head)


class LogStream:
    """The chunks of *job*, of which at most *limit* bytes are in flight. Every method raises RedisUnavailable."""

    def __init__(self, job: str = DEFAULT_JOB, *, limit: int = LIMIT) -> None:
        self.job, self.limit = job, check_int("limit of bytes in flight", limit, 1)
        self._keys = JobKeys(job)

    def recognise(self, head: bytes, name: str, *, is_exact: bool = False) -> CopiedFile:
        """
        Return the record of the file whose lines begin with *head*, under any name. Note the file if it is new. The
        file may have been shorter when it was first seen, unless *is_exact*. Raises UnknownFormat, and LogsFull if
        the file is new and too many are known.
        """
        note_job(self.job)
        client = get_client()
        while True:
            with redis_errors():
                found: Any = client.smembers(self._keys.heads)
            known = [int(each) for each in found]
            lengths = [each for each in sorted(known, reverse=True) if each < len(head) and not is_exact]
            said = at_once(
                RECOGNISE.run(
                    client,
                    self._keys,
                    known=len(known),
                    length=len(head),
                    name=codec.write_name(name),
                    most=MOST_FILES,
                    fingerprints=[_fingerprint(head[:length]) for length in (len(head), *lengths, len(head))],
                )
            )
            if said == [b"full"]:
                raise LogsFull(
                    f"{MOST_FILES:,} files of the job {self.job!r} are known, which is the limit, so no new one is "
                    "copied. Run copylogs --forget DAYS to forget files that are gone."
                )
            if said:
                return _copied_file(*said)

    def append(self, file: str, block: Block, *, name: str, wait: float | None = None) -> str:
        """
        Append *block* of the file with this fingerprint, and return the id of its chunk. Wait for room, at most
        *wait* seconds; then raise LogsFull. Raises CopiedElsewhere if the last chunk of the file does not end where
        the previous block ended, and ChunkTooLarge if the chunk is larger than the limit of bytes in flight.
        """
        if wait is not None:
            check_seconds("wait", wait, may_be_zero=True)
        payload = codec.compress(block.data)
        if len(payload) > self.limit:
            raise ChunkTooLarge(
                f"A chunk of {name} has {len(payload):,} bytes, compressed, and only {self.limit:,} may be in "
                "flight. Allow more, or make smaller chunks."
            )
        request = {"fingerprint": file, "limit": self.limit, "after": block.after, "start": block.start}
        request |= {"till": block.end, "line": block.line, "lines": block.lines, "mark": block.mark}
        request |= {"name": codec.write_name(name), "payload": payload}
        until = None if wait is None else clock() + wait
        while True:
            said = at_once(APPEND.run(get_client(), self._keys, **request))
            if said[0] == b"copied":
                return str(said[1].decode())
            if said[0] == b"at":
                raise _elsewhere(name, block.after, said[1])
            self._wait_for_room(until)

    def finish(self, file: str, place: Place, *, after: int, name: str, size: int, state: FileState) -> None:
        """
        Note that a file was read up to *place*: its first *size* bytes, as they are on the disk. The *state* may be
        "done" only if these are all of its bytes. Raises CopiedElsewhere.
        """
        request = {"till": place.position, "lines": place.lines, "mark": place.mark}
        request |= {"how": state, "size": size, "name": codec.write_name(name)}
        said = at_once(FINISH.run(get_client(), self._keys, fingerprint=file, after=after, **request))
        if said[0] == b"at":
            raise _elsewhere(name, after, said[1])

    def files(self) -> Iterable[CopiedFile]:
        """Return all files that were copied, in no order. One whose record is unreadable has that as its state."""
        with redis_errors():
            for name, stored in get_client().hscan_iter(self._keys.files, count=500):
                try:
                    found = _copied_file(name, stored)
                except UnknownFormat:
                    shown = stored[-_SHOWN:].decode("utf-8", "backslashreplace")
                    found = CopiedFile(
                        name.decode("utf-8", "backslashreplace"), Place(), "unreadable", 0, shown
                    )
                yield found

    def forget(self, age: float) -> int:
        """
        Forget files that nobody has looked at or copied for *age* seconds. Return how many there were. The number may
        be too small if a reply was lost. A file that comes again is copied, and counted, again.
        """
        milliseconds = round(check_seconds("age", age) * 1000)
        forgotten, page = 0, _PAGE
        while page == _PAGE:
            page = at_once(FORGET.run(get_client(), self._keys, age=milliseconds, limit=_PAGE))
            forgotten += page
        return forgotten

    def status(self) -> LogStatus:
        """Return the figures of data in flight, and the totals copied since the beginning."""
        with redis_errors():
            found = get_client().hmget(self._keys.state, ["bytes", "chunks", "lines", "raw", "skipped"])
        return LogStatus(*(int(each or 0) for each in found))

    def _wait_for_room(self, until: float | None) -> None:
        client = get_client()
        longest = longest_block(client)
        left = longest if until is None else until - clock()
        if left <= 0:
            raise LogsFull(
                f"{self.limit:,} bytes of logs are in flight in the job {self.job!r}, which is the limit, and nobody "
                "made room in time. Check that aggregations run."
            )
        with redis_errors(), ended_early():
            client.blpop([self._keys.room], timeout=max(SHORTEST_BLOCK, min(left, longest)))


def _fingerprint(head: bytes) -> str:
    return f"{len(head)}:{sha256(head).hexdigest()[:32]}"


def _copied_file(name: bytes, stored: bytes) -> CopiedFile:
    known = FILE.read(stored)
    try:
        place = Place(int(known["position"]), int(known["lines"]), known["mark"])
        if place.window < 0 or not known["name"]:
            raise ValueError
        return CopiedFile(
            name.decode(), place, known["state"], int(known["size"]), codec.read_name(known["name"])
        )
    except ValueError:
        raise UnknownFormat(
            "This release does not know the format in which Redis has noted how far the file is copied, so nothing "
            "of the file is copied. Run copylogs of the newer release."
        ) from None


def _elsewhere(name: str, after: int, stored: bytes) -> CopiedElsewhere:
    where = (
        f"up to byte {int(FILE.read(stored)['position']):,}" if stored else "not at all, by what Redis knows"
    )
    return CopiedElsewhere(
        f"{name} is copied {where}, and not up to byte {after:,}: another producer goes on with it."
    )
