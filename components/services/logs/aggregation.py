"""
Aggregations: each counts all chunks of a job, and each of its consumers counts some of them.

A consumer claims chunks for a lease, sums up their lines, and passes sums and chunks to one flush: a script adds the
sums to tables only if the consumer still holds all of the chunks. Each chunk counts exactly once, even if consumers
die, pause, or do not get an answer, because other consumers claim unflushed chunks when their lease has ended. A
chunk that several consumers died on is given up and listed as dead until a user sends it again.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from components.exceptions import AggregationNotFound, ChunkNotFound, ChunksLost, InvalidName, InvalidValue
from components.kit.client import get_client, longest_block
from components.kit.decoding import EPOCH, instant_of, text_of
from components.kit.errors import redis_errors, unblocked
from components.kit.leases import server_clock
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.kit.validation import check_int, check_name, check_seconds, check_several
from components.services.logs import codec
from components.services.logs.jobs import DEFAULT_JOB, LogWorkerInfo, WorkerRecord, look_at, tell
from components.services.logs.keys import JobKeys

logger = logging.getLogger(__name__)

JOIN, LEAVE, RESEND = Script("logs/join"), Script("logs/leave"), Script("logs/resend")
CLAIM, BEAT, RELEASE = Script("logs/claim"), Script("logs/beat"), Script("logs/release")
FLUSH, DISCARD, SAMPLE = Script("logs/flush"), Script("logs/discard"), Script("logs/sample")

#: The aggregation that counts by places. Projects choose the names of aggregations with their own callbacks.
PLACES = "places"
#: Seconds for which chunks are claimed, by default.
LEASE = 30.0
#: The number of times a chunk is handed out before it is given up.
TRIES = 5
MOST = 500  # chunks in a claim: takes the server a millisecond or two
_PAGE = 500
_GONE = 3_600_000  # milliseconds: a consumer without chunks that is silent for this long counts as killed
_FIELDS = 7  # words about a chunk in the answer to a claim
_LARGEST = 2**53 - 1  # sums of these stay far below 2^63, where the numbers of Redis end
_NUMBER = re.compile(rb"-?[0-9]{1,19}")

#: The number of samples that are kept for an aggregation.
KEPT = 100
#: The reason of a sample that this release cannot read.
UNREADABLE = "unreadable"
_SHOWN = 200  # bytes of such a sample


@dataclass(frozen=True)
class Chunk:
    """A claimed chunk: whole lines of a file."""

    id: str
    #: The number of times it was handed out, this time included.
    tries: int
    file: str
    #: Its position in the decompressed lines of the file.
    start: int
    end: int
    #: The number of the first line, from 1 on.
    line: int
    lines: int


@dataclass(frozen=True)
class Sample:
    """A rejected line."""

    #: Such as "address"; see Reason.
    reason: str
    file: str
    #: Its number, from 1 on, and its position in the decompressed lines of the file.
    line: int
    byte: int
    #: The beginning of the line; bytes that are not UTF-8 as \\\\xff.
    head: str


#: The stored fields of a sample, each with its type.
_KINDS = {"reason": (str,), "file": (str,), "line": (int,), "byte": (int,), "head": (str,)}


class Aggregation:
    """
    An aggregation that counts the chunks of *job*. It takes part from join() on. Every method raises
    RedisUnavailable.
    """

    def __init__(
        self, name: str, *, job: str = DEFAULT_JOB, lease: float = LEASE, tries: int = TRIES
    ) -> None:
        self.name, self.job = check_name("aggregation of logs", name), job
        self.lease, self.tries = check_seconds("lease", lease), check_int("number of tries", tries, 1)
        self._keys = JobKeys(job)

    def join(self) -> None:
        """Join the job, to get all present and future chunks. The newest lease applies to all consumers."""
        lease = max(1, round(self.lease * 1000))
        at_once(JOIN.run(get_client(), self._keys, name=self.name, lease=lease, gone=_GONE))

    def leave(self) -> None:
        """
        Leave the job. Chunks that only this aggregation has not counted are removed, and so are its samples. Its
        tables stay.
        """
        after: bytes | None = b""
        while after is not None:
            page = LEAVE.run(get_client(), self._keys, name=self.name, after=after, limit=_PAGE)
            after = at_once(page) or None
        with redis_errors():
            get_client().unlink(self._keys.samples(self.name))

    def consumer(self) -> Consumer:
        """Return a new consumer."""
        return Consumer(self)

    def dead(self, limit: int = 100) -> list[tuple[str, datetime]]:
        """
        Return the dead chunks of this aggregation among the last *limit*: their ids, and when they were given up.
        """
        ours = f" {self.name}"
        with redis_errors():
            found: Any = get_client().zrevrange(self._keys.dead, 0, limit - 1, withscores=True)
        named = [(text_of(each), instant_of(at)) for each, at in found]
        return [(each.removesuffix(ours), at) for each, at in named if each.endswith(ours)]

    def resend(self, chunks: Collection[str]) -> int:
        """Hand out dead chunks again. Return how many were dead."""
        if not check_several("chunks", chunks):
            return 0
        return sum(at_once(RESEND.run(get_client(), self._keys, name=self.name, chunks=chunks)))

    def discard(self, chunks: Collection[str]) -> int:
        """Discard dead chunks without counting them. Return how many were dead."""
        if not check_several("chunks", chunks):
            return 0
        return int(at_once(DISCARD.run(get_client(), self._keys, name=self.name, chunks=chunks)))

    def samples(self, limit: int = 50) -> list[tuple[Sample, datetime]]:
        """
        Return rejected lines, the newest first, each with when it was rejected. One that cannot be read has the
        reason "unreadable", and its stored text as the head.
        """
        with redis_errors():
            found: Any = get_client().zrevrange(self._keys.samples(self.name), 0, limit - 1, withscores=True)
        return [(_read_sample(text), instant_of(at)) for text, at in found]

    def keep(self, samples: Iterable[Sample]) -> None:
        """
        Store rejected lines, to show them. Only the newest hundred are kept. A repeated call stores each once.
        Rejected lines are counted in the flush, exactly. Samples are stored before it, so one may be shown although
        another consumer counts its chunk in the end; that one rejects the line as well.
        """
        if lines := [json.dumps(asdict(each)) for each in samples]:
            at_once(SAMPLE.run(get_client(), self._keys, name=self.name, most=KEPT, lines=lines))

    def workers(self) -> list[LogWorkerInfo]:
        """Return the consumers that live or hold chunks, ordered by id; none if it does not take part."""
        found = look_at(self.job).aggregations
        return next((list(each.workers) for each in found if each.name == self.name), [])

    def drop(self, tables: Iterable[str]) -> int:
        """Remove *tables* and all counts in them. Return how many there were, or fewer if a reply was lost."""
        names = [self._keys.counts(table) for table in check_several("tables", tables)]
        pages = [names[at : at + _PAGE] for at in range(0, len(names), _PAGE)]
        with redis_errors():
            return sum(int(get_client().unlink(*page)) for page in pages)

    def table(self, table: str) -> dict[str, int]:
        """
        Return all counts in *table*, such as "daily:country:2011-10-10". Traffic reads large ones page by page.
        Values that are not numbers are left out.
        """
        with redis_errors():
            found: Any = get_client().hgetall(self._keys.counts(table))
        return {text_of(member): int(count) for member, count in found.items() if _NUMBER.fullmatch(count)}


class Consumer:
    """One process or thread of an aggregation. Several threads must not call it at the same time."""

    def __init__(self, aggregation: Aggregation) -> None:
        self.id = secrets.token_hex(8)
        self.aggregation = aggregation
        self._keys = JobKeys(aggregation.job)
        self._number = 0
        self._newest, self._flushed = "0-0", ""
        #: The lease in seconds, as of the last claim.
        self.lease = aggregation.lease
        #: The chunks that it has claimed and has neither flushed nor given back.
        self.held: dict[str, Chunk] = {}

    def claim(self, limit: int = 16) -> list[Chunk]:
        """
        Claim at most *limit* chunks: those whose lease is over, then new ones. Raises AggregationNotFound. If none
        are returned, there is nothing left to claim now. A chunk that this consumer lost for a while and holds again
        is not returned: its counts are still valid.
        """
        if not 1 <= limit <= MOST:
            raise InvalidValue(f"The limit is {limit!r}; a claim is of 1 to {MOST} chunks.")
        new, has_more = self._claim(limit)
        while not new and has_more:  # the chunks of the first page were given up, or are held already
            new, has_more = self._claim(limit)
        return new

    def _claim(self, limit: int) -> tuple[list[Chunk], bool]:
        """Return the chunks that one call claims, and whether there may be more even if there are none."""
        found = self._run(CLAIM, number=self._number, limit=limit, tries=self.aggregation.tries)
        self._number += 1  # only now, because an unanswered call is sent again with the same number
        if not found:
            raise self._not_found()
        self._newest, self.lease = found[0].decode(), int(found[1]) / 1000
        new = []
        for at in range(3, len(found), _FIELDS):
            try:
                chunk = _chunk(found[at : at + _FIELDS])
            except ValueError:
                logger.warning(
                    "This release does not know the format of the descriptor of chunk %s of logs. The chunk is left "
                    "to other workers, and given up after %d tries.",
                    found[at].decode(),
                    self.aggregation.tries,
                )
                continue
            if chunk.id not in self.held:
                new.append(chunk)
        self.held |= {each.id: each for each in new}
        return new, found[2] == b"1"

    def _run(self, script: Script, **args: Any) -> Any:
        name = self.aggregation.name
        return at_once(script.run(get_client(), self._keys, name=name, consumer=self.id, **args))

    def wait(self, seconds: float) -> bool:
        """
        Wait, for about *seconds* at most, until new chunks have come since the last claim. Return whether they have.
        """
        client = get_client()
        longest = min(check_seconds("wait", seconds), longest_block(client))
        with redis_errors(), unblocked():
            return bool(client.xread({self._keys.stream: self._newest}, 1, max(10, round(longest * 1000))))
        return False

    def read(self, chunk: Chunk) -> bytes:
        """Return the lines of a chunk. Raises ChunkNotFound, UnknownFormat."""
        with redis_errors():
            payload: Any = get_client().get(self._keys.chunk(chunk.id))
        if payload is None:
            raise ChunkNotFound(
                f"The lines of chunk {chunk.id} ({chunk.file}, from byte {chunk.start:,}) are not in Redis. Its "
                "lease was over and another worker has counted it, or Redis has evicted it: set maxmemory-policy to "
                "noeviction."
            )
        return codec.decompress(payload)

    def beat(self) -> frozenset[str]:
        """Renew the lease of all held chunks. Return the ids of those that other consumers have by now."""
        if not self.held:
            return frozenset()
        return self._lost(each.decode() for each in self._run(BEAT, chunks=self.held))

    def flush(self, chunks: Iterable[Chunk], tables: Mapping[str, Mapping[str, int]]) -> None:
        """
        Add *tables*, which were counted in all of *chunks*, and finish these chunks: all of this happens, or nothing.
        A repeated call with the same chunks changes nothing. Raises ChunksLost if it no longer holds one of the
        chunks; the others are still held, and must be counted again. Raises InvalidValue, InvalidName.
        """
        given = list(chunks)
        ids = sorted({each.id for each in given})
        if not ids:
            raise InvalidValue("There is nothing to flush. Pass at least one chunk.")
        batch = sha256(" ".join(ids).encode()).hexdigest()[:16]
        if batch == self._flushed and not any(each.id in self.held for each in given):
            return  # a chunk that is held again was claimed anew: Redis was restarted, and has lost that flush
        # A chunk that a beat reported as lost and that was claimed again later may be in the sums twice.
        lost = self._lost(each.id for each in given if self.held.get(each.id) is not each)
        if not lost:
            found = self._run(FLUSH, batch=batch, count=len(ids), given=[*ids, *_increments(tables)])
            lost = self._lost(each.decode() for each in found)
        if lost:
            raise ChunksLost(
                f"{len(lost)} of {len(ids)} chunks are no longer held, so nothing was added. The lease of "
                f"{self.lease:g} s was over, or the aggregation has left. Count the others again.",
                lost,
            )
        self._flushed = batch
        self._lost(ids)

    def release(self) -> None:
        """Give back all held chunks, so that others can claim them at once. The consumer can claim again."""
        self._run(RELEASE, chunks=self.held)
        self.held.clear()

    def forget(self, chunk: Chunk) -> None:
        """
        Stop holding a chunk without giving it back: others get it when its lease has ended, which counts as a try.
        """
        self.held.pop(chunk.id, None)

    def now(self) -> datetime:
        """Return the time by the clock of Redis."""
        return EPOCH + timedelta(microseconds=server_clock(get_client()))

    def is_drained(self) -> bool:
        """Return True if no consumer of the aggregation holds a chunk. After a claim of nothing, all is counted."""
        with redis_errors():
            found: Any = get_client().xpending(self._keys.stream, self.aggregation.name)
        return not found["pending"]

    def leave(self) -> None:
        """Give back all held chunks, and remove this consumer."""
        self.release()
        with redis_errors():
            get_client().delete(self._keys.worker(self.id))

    def sample(self, samples: Iterable[Sample]) -> None:
        """Store samples of rejected lines of chunks that are about to be flushed."""
        self.aggregation.keep(samples)

    def tell(self, record: WorkerRecord) -> None:
        """Report the state of the running worker. Call this every few seconds."""
        tell(self.aggregation.job, self.id, record)

    def _lost(self, ids: Iterable[str]) -> frozenset[str]:
        lost = frozenset(ids)
        for each in lost:
            self.held.pop(each, None)
        return lost

    def _not_found(self) -> AggregationNotFound:
        return AggregationNotFound(
            f"No aggregation {self.aggregation.name!r} takes part in the job {self.aggregation.job!r}: it has left, "
            "or Redis has lost its data. Call join()."
        )


def _chunk(words: list[Any]) -> Chunk:
    name, tries, file, start, end, line, lines = words
    shown = codec.read_name(file.decode("utf-8", "surrogateescape"))
    return Chunk(name.decode(), int(tries), shown, int(start), int(end), int(line), int(lines))


def _increments(tables: Mapping[str, Mapping[str, int]]) -> Iterable[str | bytes]:
    """Yield for each table its name and a text, which Redis takes apart much faster than it reads many arguments."""
    for table, counts in tables.items():
        numbers = counts.values()
        if not {*map(type, numbers)} <= {int} or max(map(abs, numbers), default=0) > _LARGEST:
            wrong = next(each for each in numbers if type(each) is not int or abs(each) > _LARGEST)
            raise InvalidValue(f"A count in {table!r} is {wrong!r}; it must be a whole number below 2^53.")
        text = "".join([f"{member}\0{count}\0" for member, count in counts.items()])
        if text.count("\0") != 2 * len(counts):
            raise InvalidName(f"A member of {table!r} has a NUL in it.")
        try:
            yield from (table, text.encode())
        except UnicodeEncodeError as error:
            raise InvalidName(f"A member of {table!r} cannot be encoded: {error}.") from None


def _read_sample(text: bytes) -> Sample:
    """Return a stored sample. One that this release cannot read is shown as it is, so that lists never fail."""
    if len(found := codec.read_fields(text, _KINDS)) == len(_KINDS):
        return Sample(**found)
    return Sample(UNREADABLE, "", 0, 0, text[:_SHOWN].decode("utf-8", "backslashreplace"))
