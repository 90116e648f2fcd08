"""
Batch: chunks of logs that are counted but not flushed yet, with their counts.

Sums are in callbacks until they are taken; then the batch is a message, which is sent until it is answered. A batch
that has lost a chunk is useless: it begins again with new callbacks.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from components.services.logs import Chunk, Consumer, Sample, totals_of
from components.services.logs.lines import Callback, LineReader, Rejected

#: Roughly how many members of tables are in a flush: Redis serves nobody else for a microsecond or two each.
MEMBERS = 100_000
_FIRST = 200_000  # lines of the first batch; the number of members that they make is not known yet
_GROWTH = 4  # a batch has at most so many times the lines of the batch before
_MOST = 100_000_000  # lines


@dataclass(frozen=True)
class Message:
    """The data of one flush."""

    chunks: Sequence[Chunk]
    tables: Mapping[str, Mapping[str, int]]
    samples: Sequence[Sample]
    lines: int


class Batch:
    """The counts that callbacks made of chunks that *reader* has read."""

    def __init__(
        self, aggregation: str, reader: LineReader, callbacks: Sequence[Callable[[], Callback]]
    ) -> None:
        self._totals = totals_of(aggregation)
        self._reader = reader
        self._make = callbacks
        self._limit = _FIRST
        self.begin()

    def begin(self) -> None:
        """Drop the counts, and begin again. The batch is invalid until all callbacks are created."""
        #: The counts may differ from what the chunks contain.
        self.is_spoiled = True
        self.callbacks = [make() for make in self._make]
        self._reader.take()
        self.chunks: list[Chunk] = []
        self._lines = 0
        self.is_spoiled = False

    def add(self, chunk: Chunk, lines: bytes) -> None:
        """Count the lines of a chunk. Raises any error of a callback."""
        columns = self._reader.read(lines, source=chunk.file, offset=chunk.start, line=chunk.line)
        for callback in self.callbacks:
            callback.block(columns)
        self.chunks.append(chunk)
        self._lines += chunk.lines

    @property
    def is_full(self) -> bool:
        return self._lines >= self._limit or any(getattr(each, "is_full", False) for each in self.callbacks)

    def take(self) -> Message:
        """Return all counts, and empty the batch."""
        tally = self._reader.take()
        rejected = {reason.name.lower(): count for reason, count in tally.rejected.items()}
        counted = tally.lines - sum(rejected.values())
        tables: dict[str, Mapping[str, int]] = {
            self._totals: Counter({"lines": tally.lines, "counted": counted} | rejected)
        }
        for callback in self.callbacks:
            for name, counts in callback.flush().items():
                tables[name] = _sum(tables[name], counts) if name in tables else counts
        self._learn(sum(map(len, tables.values())))
        message = Message(self.chunks, tables, [_sample(each) for each in tally.samples], self._lines)
        self.chunks, self._lines = [], 0
        return message

    def _learn(self, members: int) -> None:
        """Choose how many lines the next batch may have, by how many *members* the lines of this one made."""
        fitting = self._lines * MEMBERS // max(1, members)
        self._limit = max(1, min(_MOST, _GROWTH * self._lines, fitting))


def send(message: Message, consumer: Consumer) -> None:
    """Flush a message. A repeated call changes nothing. Raises ChunksLost, RedisUnavailable."""
    consumer.sample(message.samples)
    consumer.flush(message.chunks, message.tables)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    both = Counter(one)
    both.update(other)
    return both


def _sample(rejected: Rejected) -> Sample:
    head = rejected.head.decode("utf-8", "backslashreplace")
    return Sample(rejected.reason.name.lower(), rejected.source, rejected.line, rejected.offset, head)
