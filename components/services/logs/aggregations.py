"""
Aggregations: who counts the chunks of a job. Each aggregation gets every chunk; among its consumers each gets some.

A consumer claims chunks for a lease, adds up what is in them, and hands in sums and chunks in one flush: a script
adds the sums to tables only if the consumer still holds every one of the chunks. So each chunk counts exactly once,
whoever dies, pauses, or does not hear an answer: what was not flushed is claimed by others when its lease is over. A
chunk under which several consumers died is given up and listed as dead, until somebody sends it again.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from components.exceptions import (
    AggregationNotFound,
    ChunkNotFound,
    ChunksLost,
    InvalidCount,
    InvalidLimit,
    InvalidName,
)
from components.kit.client import get_client, longest_block
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.stored import instant_of, text_of
from components.kit.values import check_name, check_seconds
from components.services.logs import codec, keys
from components.services.logs.jobs import DEFAULT_JOB, Keys
from components.services.logs.samples import Sample, keep_samples, read_samples
from components.services.logs.workers import LogWorkerInfo, WorkerRecord, list_workers, tell

logger = logging.getLogger(__name__)

_join, _leave, _resend = Script("logs/join"), Script("logs/leave"), Script("logs/resend")
_claim, _beat, _release = Script("logs/claim"), Script("logs/beat"), Script("logs/release")
_flush, _discard = Script("logs/flush"), Script("logs/discard")

#: The aggregation that counts by places; others are called by callbacks of one's own.
PLACES = "places"
#: Seconds for which chunks are claimed, as a rule.
LEASE = 30.0
#: How often a chunk is handed out before it is given up.
TRIES = 5
MOST = 500  # chunks in a claim: a millisecond or two of the server
_PAGE = 500
_GONE = 3_600_000  # milliseconds: who holds nothing and has asked for nothing for so long was killed
_FIELDS = 7  # words about a chunk in the answer to a claim
_LARGEST = 2**53 - 1  # sums of these stay far below 2^63, where Redis has no more numbers
_NUMBER = re.compile(rb"-?[0-9]{1,19}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Chunk:
    """Whole lines of a file, claimed."""

    id: str
    #: How often it was handed out, this time included.
    tries: int
    file: str
    #: Where in the lines of the file, decompressed.
    start: int
    end: int
    #: The number of the first line, from 1 on.
    line: int
    lines: int


class Aggregation:
    """One that counts chunks of *job*. It takes part from join() on. Every method raises RedisUnavailable."""

    def __init__(
        self, name: str, *, job: str = DEFAULT_JOB, lease: float = LEASE, tries: int = TRIES
    ) -> None:
        self.name, self.job = check_name("aggregation of logs", name), job
        self.lease, self.tries = check_seconds("lease", lease), tries
        if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
            raise InvalidLimit(f"The number of tries is {tries!r}; it must be a whole number from 1 on.")
        self._keys = Keys(job)

    def join(self) -> None:
        """Take part: it gets the chunks that are there, and all that come. The newest lease holds for all."""
        _join(get_client(), keys=self._keys.join, args=[self.name, max(1, round(self.lease * 1000)), _GONE])

    def leave(self) -> None:
        """Take part no longer: what only this one has not counted goes, and samples do. Its tables stay."""
        after: bytes | None = b""
        while after is not None:
            args = [self.name, after, _PAGE]
            after = _leave(get_client(), keys=self._keys.leave, args=args) or None
        with redis_errors():
            get_client().unlink(keys.log_samples(self.job, self.name))

    def consumer(self) -> Consumer:
        return Consumer(self)

    def dead(self, limit: int = 100) -> list[tuple[str, datetime]]:
        """The chunks that were given up last: id and when."""
        ours = f" {self.name}"
        with redis_errors():
            found: Any = get_client().zrevrange(self._keys.dead, 0, limit - 1, withscores=True)
        named = [(text_of(each), instant_of(at)) for each, at in found]
        return [(each.removesuffix(ours), at) for each, at in named if each.endswith(ours)]

    def resend(self, chunks: Collection[str]) -> int:
        """Hand out again what was given up; how many."""
        if not chunks:
            return 0
        return sum(_resend(get_client(), keys=self._keys.resend, args=[self.name, *chunks]))

    def discard(self, chunks: Collection[str]) -> int:
        """Be done, uncounted, with what was given up; how many."""
        if not chunks:
            return 0
        return int(_discard(get_client(), keys=self._keys.leave, args=[self.name, *chunks]))

    def samples(self, limit: int = 50) -> list[tuple[Sample, datetime]]:
        """Lines that were rejected, the newest first, each with when."""
        return read_samples(self.job, self.name, limit)

    def workers(self) -> list[LogWorkerInfo]:
        """Those that live, and those that hold chunks."""
        return list_workers(self.job, self.name)

    def drop(self, tables: Iterable[str]) -> int:
        """Remove *tables* with all that was counted in them; how many, or fewer if a reply was lost."""
        names = [keys.log_table(self.job, table) for table in tables]
        pages = [names[at : at + _PAGE] for at in range(0, len(names), _PAGE)]
        with redis_errors():
            return sum(int(get_client().unlink(*page)) for page in pages)

    def table(self, table: str) -> dict[str, int]:
        """
        Return all that was counted in *table*, such as "daily:country:2011-10-10"; of large ones Traffic reads pages.

        What is not a number there is left out.
        """
        with redis_errors():
            found: Any = get_client().hgetall(keys.log_table(self.job, table))
        return {text_of(member): int(count) for member, count in found.items() if _NUMBER.fullmatch(count)}


class Consumer:
    """One process, or thread, of an aggregation. Not to be shared by threads that call it at the same time."""

    def __init__(self, aggregation: Aggregation) -> None:
        self.id = secrets.token_hex(8)
        self.aggregation = aggregation
        self._keys = Keys(aggregation.job)
        self._head = [aggregation.name, self.id]
        self._number = 0
        self._newest, self._flushed = "0-0", ""
        #: Seconds of a lease, as the last claim had it.
        self.lease = aggregation.lease
        #: What it claimed and has neither flushed nor given back.
        self.held: dict[str, Chunk] = {}

    def claim(self, limit: int = 16) -> list[Chunk]:
        """
        Claim chunks, at most *limit*: those whose lease is over, then new ones. Raises AggregationNotFound.

        One that it holds already, having lost it for a while, is not among them: what it knows of it is still good.
        If there are none, there is nothing left to claim now.
        """
        if not 1 <= limit <= MOST:
            raise InvalidLimit(f"The limit is {limit!r}; a claim is of 1 to {MOST} chunks.")
        new, has_more = self._claim(limit)
        while not new and has_more:  # those on the first page were given up, or are held already
            new, has_more = self._claim(limit)
        return new

    def _claim(self, limit: int) -> tuple[list[Chunk], bool]:
        """What one call claims, and whether there may be more although that is nothing."""
        args = [*self._head, self._number, limit, self.aggregation.tries]
        found = _claim(get_client(), keys=self._keys.claim(self.id), args=args)
        self._number += 1  # only now: a call that was not answered is sent again under its number
        if not found:
            raise self._not_found()
        self._newest, self.lease = found[0].decode(), int(found[1]) / 1000
        new = []
        for at in range(3, len(found), _FIELDS):
            try:
                chunk = _chunk(found[at : at + _FIELDS])
            except ValueError:
                logger.warning(
                    "Chunk %s of logs is described in no format that this release knows. It is left to others, and "
                    "given up after %d tries.",
                    found[at].decode(),
                    self.aggregation.tries,
                )
                continue
            if chunk.id not in self.held:
                new.append(chunk)
        self.held |= {each.id: each for each in new}
        return new, found[2] == b"1"

    def wait(self, seconds: float) -> bool:
        """Wait until chunks have come since the last claim, at most *seconds* or a few; whether some have."""
        client = get_client()
        longest = min(check_seconds("wait", seconds), longest_block(client))
        with redis_errors():
            return bool(client.xread({self._keys.stream: self._newest}, 1, max(10, round(longest * 1000))))

    def read(self, chunk: Chunk) -> bytes:
        """Its lines. Raises ChunkNotFound."""
        with redis_errors():
            payload: Any = get_client().get(self._keys.chunk + chunk.id)
        if payload is None:
            raise ChunkNotFound(
                f"The lines of chunk {chunk.id} ({chunk.file}, from byte {chunk.start:,}) are not in Redis: its "
                "lease was over and another has counted it, or Redis evicted it. Let maxmemory-policy be noeviction."
            )
        return codec.decompress(payload)

    def beat(self) -> frozenset[str]:
        """Hold all that is held for another lease; what others have by now, which is no longer held."""
        if not self.held:
            return frozenset()
        found = _beat(get_client(), keys=self._keys.beat, args=[*self._head, *self.held])
        return self._lost(each.decode() for each in found)

    def flush(self, chunks: Iterable[Chunk], tables: Mapping[str, Mapping[str, int]]) -> None:
        """
        Add *tables*, which were counted in all of *chunks*, and be done with these: all, or nothing.

        Raises ChunksLost if it does not hold one of them any more, in which case the others are held as before, and
        are to be counted anew. Again, with the same chunks, it changes nothing.
        """
        given = list(chunks)
        ids = sorted({each.id for each in given})
        if not ids:
            raise InvalidCount("Nothing was counted: a flush is of one chunk at least.")
        batch = sha256(" ".join(ids).encode()).hexdigest()[:16]
        if batch == self._flushed and not any(each.id in self.held for each in given):
            return  # held again, it was claimed anew: Redis, restarted, has lost that flush
        # What a beat told to be lost, and was claimed anew since, may be among the sums twice.
        lost = self._lost(each.id for each in given if self.held.get(each.id) is not each)
        if not lost:
            args = [*self._head, batch, len(ids), *ids, *_increments(tables)]
            found = _flush(get_client(), keys=self._keys.flush(self.id), args=args)
            lost = self._lost(each.decode() for each in found)
        if lost:
            raise ChunksLost(
                f"{len(lost)} of {len(ids)} chunks are no longer held, so nothing was added: the lease of "
                f"{self.lease:g} s was over, or the aggregation has left. Count the others anew.",
                lost,
            )
        self._flushed = batch
        self._lost(ids)

    def release(self) -> None:
        """Give back all that is held; others can claim it at once. Its group forgets it, until it claims again."""
        _release(get_client(), keys=self._keys.release, args=[*self._head, *self.held])
        self.held.clear()

    def forget(self, chunk: Chunk) -> None:
        """Hold it no longer, without giving it back: others get it when its lease is over, as another try."""
        self.held.pop(chunk.id, None)

    def now(self) -> datetime:
        """What time it is, by Redis' clock."""
        with redis_errors():
            seconds, micros = get_client().time()
        return _EPOCH + timedelta(seconds=int(seconds), microseconds=int(micros))

    def is_drained(self) -> bool:
        """Whether no consumer of the aggregation holds a chunk; after a claim of nothing, all is counted."""
        with redis_errors():
            found: Any = get_client().xpending(self._keys.stream, self.aggregation.name)
        return not found["pending"]

    def leave(self) -> None:
        """Give back all that is held, and be forgotten."""
        self.release()
        with redis_errors():
            get_client().delete(keys.log_worker(self.aggregation.job, self.id))

    def sample(self, samples: Iterable[Sample]) -> None:
        """Show some of the lines that it has rejected, in chunks that it is about to flush."""
        keep_samples(self.aggregation.job, self.aggregation.name, samples)

    def tell(self, record: WorkerRecord) -> None:
        """Say of itself that it is there, and what it does; to be said again every few seconds."""
        tell(self.aggregation.job, self.id, record)

    def _lost(self, ids: Iterable[str]) -> frozenset[str]:
        """They are no longer held."""
        lost = frozenset(ids)
        for each in lost:
            self.held.pop(each, None)
        return lost

    def _not_found(self) -> AggregationNotFound:
        return AggregationNotFound(
            f"No aggregation {self.aggregation.name!r} takes part in job {self.aggregation.job!r}: it has left, or "
            "Redis has lost its data. Let it join()."
        )


def _chunk(words: list[Any]) -> Chunk:
    name, tries, file, start, end, line, lines = words
    shown = file.decode("utf-8", "surrogateescape")
    return Chunk(name.decode(), int(tries), shown, int(start), int(end), int(line), int(lines))


def _increments(tables: Mapping[str, Mapping[str, int]]) -> Iterable[str | bytes]:
    """A text for each table: Redis takes it apart much faster than it reads as many arguments."""
    for table, counts in tables.items():
        numbers = counts.values()
        if not {*map(type, numbers)} <= {int} or max(map(abs, numbers), default=0) > _LARGEST:
            wrong = next(each for each in numbers if type(each) is not int or abs(each) > _LARGEST)
            raise InvalidCount(f"A count in {table!r} is {wrong!r}; it must be a whole number below 2^53.")
        text = "".join([f"{member}\0{count}\0" for member, count in counts.items()])
        if text.count("\0") != 2 * len(counts):
            raise InvalidName(f"A member of {table!r} has a NUL in it.")
        try:
            yield from (table, text.encode())
        except UnicodeEncodeError as error:
            raise InvalidName(f"A member of {table!r} is no text: {error}.") from None
