"""
LogWorker: counts many chunks of logs in memory, and flushes sums and chunks in one step (chapter 6.6).

Any number of workers may run. A chunk counts once, even if workers die: if it was not flushed, another worker gets it
when its lease has ended, and a flush that contains chunks of another worker is refused as a whole. While Redis is
unavailable, the worker logs this once, and later continues where it was, because no call adds anything twice. If a
callback fails on a chunk, all counts of the batch are dropped and made again. After some tries, the chunk is given
up, and the control room shows it.
"""

import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from components.exceptions import ChunkNotFound, ChunksLost, RedisUnavailable, UnknownFormat, WorkersDiffer
from components.kit.translation import counted
from components.services.logs import Aggregation, Chunk, WorkerRecord
from components.services.logs.lines import Callback, LineReader
from components.services.logs.worker.batch import Batch, Message, send
from components.workers.loop import DRAINED, Loop
from components.workers.outage import sentence

logger = logging.getLogger(__name__)

_NAP = 1.0  # seconds between two checks for chunks whose lease has ended; new chunks end the nap
_LATEST = 1.0  # seconds that a counted chunk waits for others, to be flushed together
_TURN = 0.25  # seconds that counting the chunks of one claim should take
_MOST = 64  # chunks in a claim
_TELL = 2.0  # seconds between two reports of the worker
_FIRST_DAY = date(1970, 1, 1)  # earlier days come from clocks that were never set


class LogWorker(Loop):
    """
    Counts the chunks of *aggregation* with *callbacks*, which are created again when their counts are invalid.

    Lines of days before 1970, or more than *days* days ago, are rejected as late, those of days after tomorrow as of
    the future. With *drains* the worker ends when nothing is left to count. With *keep*, it calls *forget* each day
    to remove counts older than *keep* days, and rejects older lines as late.
    """

    def __init__(
        self,
        aggregation: Aggregation,
        reader: LineReader,
        callbacks: Sequence[Callable[[], Callback]],
        *,
        days: int | None = None,
        keep: int | None = None,
        forget: Callable[[date], object] = lambda before: None,
        drains: bool = False,
        about: tuple[str, str] = ("", ""),
    ) -> None:
        super().__init__(lease=aggregation.lease)
        self.aggregation, self.reader = aggregation, reader
        self.consumer = aggregation.consumer()
        #: The chunks and lines that it has counted and flushed.
        self.lines = self.chunks = 0
        #: Part of its report about itself: format and level.
        self.about = about
        self._callbacks, self._drains = callbacks, drains
        self._days = min((each for each in (days, keep) if each is not None), default=None)
        self._keep, self._forget, self._forgot_on = keep, forget, date.min
        self._is_drained = False
        self._todo: deque[Chunk] = deque()
        self._message: Message | None = None
        self._limit = 1
        self._began_at, self._started_at = time.monotonic(), datetime.now(UTC)
        self._renew_at = self._tell_at = self._day_at = self._oldest = 0.0
        self._lines_told = 0
        self._told_at = self._began_at

    @property
    def id(self) -> str:
        return self.consumer.id

    def begin(self) -> None:
        """
        Join the aggregation. Raises AggregationNotFound if it has left meanwhile, WorkersDiffer, RedisUnavailable,
        and any error from creating a callback.
        """
        self.aggregation.join()
        self._check_peers()
        self._batch = Batch(self.aggregation.name, self.reader, self._callbacks)

    def describe_running(self) -> Iterable[str]:
        yield f"{counted(self.lines, 'line')} of {counted(self.chunks, 'chunk')} counted so far."

    def is_done(self) -> bool:
        return super().is_done() or self._is_drained

    def close(self) -> int:
        """Flush the counts, unless the worker must end at once: then other workers count the chunks."""
        if self.is_killed:
            return DRAINED
        try:
            self._flush_if(True)
            self.consumer.leave()
        except RedisUnavailable as error:
            logger.warning("%s Other workers count the chunks that were claimed later.", sentence(error))
        return DRAINED

    def _check_peers(self) -> None:
        """
        Refuse to count if other workers have other options, because tables would then have only some of the lines.
        """
        for peer in self.aggregation.workers():
            if not peer.record or not peer.record.format:  # silent, or of another release
                continue
            if (peer.record.format, peer.record.level) != self.about:
                theirs, ours = f"{peer.record.format}, {peer.record.level}", ", ".join(self.about)
                raise WorkersDiffer(
                    f"A worker of {self.aggregation.name!r} counts with other options ({theirs}) "
                    f"than this one ({ours}): process {peer.record.pid} on {peer.record.host}. "
                    "Stop it first, or give both the same options."
                )

    def tick(self) -> float:
        """Count some chunks, flush if it is time to, and wait if there are none."""
        self._look_after()
        if self._batch.is_spoiled:
            self._begin_anew()
        self._flush_if(self._message is not None)
        began_at, counting = time.monotonic(), len(self._todo)
        while self._todo and not self.is_stopping:
            self._count(self._todo[0])
            self._renew()
            self._flush_if(self._batch.is_full or time.monotonic() - self._oldest > _LATEST)
        self._pace(counting, time.monotonic() - began_at)
        if self.may_claim:
            self._todo.extend(self.consumer.claim(self._limit))
        if self._todo or self.is_stopping:
            return 0.0
        self._flush_if(True)
        self._is_drained = self._drains and self.consumer.is_drained()
        if self._todo or self._is_drained:
            return 0.0
        if not self.may_claim:
            return _NAP
        self.consumer.wait(_NAP)
        return 0.0

    def _pace(self, counted: int, seconds: float) -> None:
        """Choose how many chunks to claim next: few enough that other workers do not run out of chunks."""
        if counted:
            fitting = int(counted * _TURN / max(seconds, 1e-6))
            self._limit = max(1, min(_MOST, 2 * self._limit, fitting))

    def _count(self, chunk: Chunk) -> None:
        try:
            lines = self.consumer.read(chunk)
        except (ChunkNotFound, UnknownFormat) as error:
            logger.warning("%s", error)
            self._put_back(chunk)
            return
        try:
            self._batch.add(chunk, lines)
        except Exception:
            logger.exception(
                "Chunk %s cannot be counted (%s, from line %s on, try %d of %d). What was counted with it is counted "
                "again.",
                *(chunk.id, chunk.file, f"{chunk.line:,}", chunk.tries, self.aggregation.tries),
            )
            self._put_back(chunk)
            self._begin_anew()
            return
        self._todo.popleft()
        if len(self._batch.chunks) == 1:
            self._oldest = time.monotonic()

    def _put_back(self, chunk: Chunk) -> None:
        self.consumer.forget(chunk)
        self._todo.remove(chunk)

    def _begin_anew(self) -> None:
        self._batch.begin()
        self._message = None
        self._todo = deque(self.consumer.held.values())

    def _renew(self) -> None:
        if time.monotonic() < self._renew_at:
            return
        lost = self.consumer.beat()
        self._renew_at = time.monotonic() + self.consumer.lease / 3
        if lost:
            logger.warning(
                "The lease of %d chunks was over before it was renewed. Others count them.", len(lost)
            )
            self._begin_anew()

    def _flush_if(self, is_time: bool) -> None:
        if not is_time:
            return
        if self._message is None and self._batch.chunks:
            self._message = self._take()
        if self._message is None:
            return
        try:
            send(self._message, self.consumer)
        except ChunksLost as error:
            logger.warning("%s", error)
            self._begin_anew()
            return
        self.lines += self._message.lines
        self.chunks += len(self._message.chunks)
        self._message = None

    def _take(self) -> Message | None:
        chunks = self._batch.chunks
        try:
            return self._batch.take()
        except Exception:
            logger.exception("A callback failed to return its counts of %d chunks.", len(chunks))
            for chunk in chunks:
                self.consumer.forget(chunk)
            self._begin_anew()
            return None

    def _look_after(self) -> None:
        """Report that the worker is running, and check whether a new day has begun."""
        now = time.monotonic()
        if now >= self._day_at:
            today = self.consumer.now().date()
            first = _FIRST_DAY if self._days is None else max(_FIRST_DAY, today - timedelta(self._days))
            self.reader.days = (first, today + timedelta(1))
            if self._keep is not None and today != self._forgot_on:
                self._forget(today - timedelta(self._keep))
                self._forgot_on = today
            self._day_at = now + 60
        if now < self._tell_at:
            return
        rate = (self.lines - self._lines_told) / max(now - self._told_at, 1e-3)
        process = (socket.gethostname(), os.getpid(), self._started_at.isoformat(timespec="seconds"))
        done = (self.lines, self.chunks, round(rate, 1))
        record = WorkerRecord(*process, *done, *self.about, self.reader.kernel.name)
        # If Redis is out of memory, it refuses this, but accepts flushes, which make room. Flushes report other
        # errors.
        with suppress(RedisUnavailable):
            self.consumer.tell(record)
        self._told_at, self._lines_told, self._tell_at = now, self.lines, now + _TELL
