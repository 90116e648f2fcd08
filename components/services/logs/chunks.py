"""
LogStream: where producers put chunks of logs, for aggregations to count; no more bytes than a limit are in flight.

The limit is shared: bytes in flight are counted in Redis, by the script that stores a chunk. A producer that finds no
room waits on a list, on which whoever frees a chunk puts a token. The token is a hint and carries nothing: who is
woken tries again, and looks every few seconds anyway. If no aggregation has joined, chunks wait for the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from components.exceptions import ChunkTooLarge, CopiedElsewhere, LogsFull
from components.kit.client import SHORTEST_BLOCK, get_client, longest_block
from components.kit.errors import redis_errors
from components.kit.leases import clock
from components.kit.scripts import Script
from components.kit.values import check_seconds
from components.services.logs import codec
from components.services.logs.blocks import Block, Place
from components.services.logs.files import CopiedFile, FileState, known_files, recognise, shown
from components.services.logs.jobs import DEFAULT_JOB, Keys, check_bytes
from components.services.logs.looking import note_job

_append, _finish, _forget = Script("logs/append"), Script("logs/finish"), Script("logs/forget")

#: Bytes in flight, compressed: a quarter of the lines, as a rule.
LIMIT = 256 * 1024 * 1024
_PAGE = 1_000  # files that one script forgets, a millisecond or two of the server


@dataclass(frozen=True)
class LogStatus:
    """What a job has in Redis, and what went through it."""

    #: In flight, compressed.
    bytes: int
    chunks: int
    #: Ever copied.
    lines: int
    raw_bytes: int
    #: Lines that were left out because they are longer than a chunk.
    skipped: int


class LogStream:
    """The chunks of *job*, of which at most *limit* bytes are in flight. Every method raises RedisUnavailable."""

    def __init__(self, job: str = DEFAULT_JOB, *, limit: int = LIMIT) -> None:
        self.job, self.limit = job, check_bytes("limit of bytes in flight", limit, 1)
        self._keys = Keys(job)

    def recognise(self, head: bytes, name: str, *, is_exact: bool = False) -> CopiedFile:
        """
        What is known of the file whose lines begin with *head*, by any name; if nothing, it is new and noted.

        It may have been shorter when it was first seen, unless *is_exact*.
        """
        note_job(self.job)
        return recognise(self._keys, head, name, is_exact=is_exact)

    def append(self, file: str, block: Block, *, name: str, wait: float | None = None) -> str:
        """
        Append *block* of the file with that fingerprint; the id of its chunk. Again, it answers the same.

        It waits for room, at most *wait* seconds: then it raises LogsFull. Raises CopiedElsewhere if the file's last
        chunk did not end where this one's block before did, ChunkTooLarge if it could never be in flight.
        """
        if wait is not None:
            check_seconds("wait", wait, may_be_zero=True)
        payload = codec.compress(block.data)
        if len(payload) > self.limit:
            raise ChunkTooLarge(
                f"A chunk of {name} has {len(payload):,} bytes, compressed, and only {self.limit:,} may be in "
                "flight: allow more, or make smaller chunks."
            )
        until = None if wait is None else clock() + wait
        args = [file, self.limit, block.after, block.start, block.end, block.line, block.lines, block.mark]
        while True:
            said = _append(get_client(), keys=self._keys.append, args=[*args, shown(name), payload])
            if said[0] == b"copied":
                return str(said[1].decode())
            if said[0] == b"at":
                raise _elsewhere(name, block.after, said[1])
            self._wait_for_room(until)

    def finish(self, file: str, place: Place, *, after: int, name: str, size: int, state: FileState) -> None:
        """
        Note that a file was read up to *place*, *size* bytes as they are stored. Raises CopiedElsewhere.

        The *state* is "done" only if these are all the bytes of it.
        """
        args = [file, after, place.position, place.lines, place.mark, state, size, shown(name)]
        said = _finish(get_client(), keys=self._keys.finish, args=args)
        if said[0] == b"at":
            raise _elsewhere(name, after, said[1])

    def files(self) -> Iterable[CopiedFile]:
        """All files that were copied, in no order."""
        return known_files(self._keys)

    def forget(self, age: float) -> int:
        """
        Forget files that nobody has looked at or copied for *age* seconds; how many, or fewer if a reply was lost.

        If one of them comes again, it is copied again, and so counts again.
        """
        args = [round(check_seconds("age", age) * 1000), _PAGE]
        forgotten, page = 0, _PAGE
        while page == _PAGE:
            page = _forget(get_client(), keys=self._keys.forget, args=args)
            forgotten += page
        return forgotten

    def status(self) -> LogStatus:
        with redis_errors():
            found = get_client().hmget(self._keys.state, ["bytes", "chunks", "lines", "raw", "skipped"])
        return LogStatus(*(int(each or 0) for each in found))

    def _wait_for_room(self, until: float | None) -> None:
        client = get_client()
        longest = longest_block(client)
        left = longest if until is None else until - clock()
        if left <= 0:
            raise LogsFull(
                f"{self.limit:,} bytes of logs are in flight in job {self.job!r}, which is the limit, and nobody "
                "made room in time: do aggregations run?"
            )
        with redis_errors():
            client.blpop([self._keys.room], timeout=max(SHORTEST_BLOCK, min(left, longest)))


def _elsewhere(name: str, after: int, record: bytes) -> CopiedElsewhere:
    where = f"up to byte {int(record.split(b' ', 1)[0]):,}" if record else "not at all, by what Redis knows"
    return CopiedElsewhere(
        f"{name} is copied {where}, and not up to byte {after:,}: another producer goes on with it."
    )
