"""
The buffer of this process: counts and sums are added in memory, and sent once a second in few calls, by a thread.

Counting never waits: if the buffer is in use, by another thread or by code that a signal handler interrupted, the
count is put into a queue. An unanswered call is sent again unchanged, and further counts are added up meanwhile, so
Redis may be unavailable for long. On a cluster, this applies to the buckets of an unavailable node; the other nodes
get their counts. A killed process loses its last second; a process that ends otherwise sends it (kit/at_exit.py). A
forked child starts with an empty buffer: its parent sends the old counts.
"""

import asyncio
import logging
import threading
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any

from components.exceptions import CountRefused, InvalidValue, RedisNotPrivate
from components.kit.at_exit import at_end
from components.kit.client import get_client
from components.kit.forking import FORKS_IN_C, in_child, notice
from components.kit.leases import clock
from components.kit.scripts import CLUSTERS
from components.kit.sync_async import at_once
from components.kit.test_guard import is_test_run
from components.kit.validation import check_name
from components.services.counters.additions import (
    ADD,
    MAX_COUNT,
    PATIENCE,
    SUM,
    Addition,
    Target,
    additions,
    check_count,
    is_summed,
    name_of,
    tag_of,
)
from components.services.counters.additions import forget as forget_sources
from components.services.counters.histograms import bucket_of
from components.services.counters.precisions import plan
from components.services.counters.series import is_time

logger = logging.getLogger(__name__)

INTERVAL = 1.0  # seconds from one flush to the next
#: The most counters that are kept in memory, some 20 MB. Counts of further ones are dropped.
MAX_NAMES = 100_000
_LONGEST_HOLD = 1.0  # seconds; counting holds the guard of the buffer for microseconds
_LAST_WAIT = 5.0  # seconds that the end of a process waits for a running flush

#: Counters of this buffer itself.
DROPPED, DROPPED_TIME, OUTAGES = "counters:dropped", "counters-us:dropped", "counters:outages"

_ONE = 1


class Buffer:
    """Counts that are not yet sent."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.counts: dict[Target, int] = {}
        self._inbox: SimpleQueue[tuple[Target, int] | None] = SimpleQueue()
        self._sending = threading.Lock()
        self._unanswered: list[Addition] = []
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._is_away = False
        #: Whether any call of the last flush was answered.
        self._was_answered = False

    def begin(self, target: Target, count: int) -> None:
        """Add the first count of a target since the last flush. The caller holds the guard. Raises InvalidName."""
        name = _checked(target)
        is_test_run()  # noticed now, since the last counts are sent when Django has ended the run
        if len(self.counts) >= MAX_NAMES and not is_summed(target):
            if isinstance(target, tuple):  # its value is counted, or dropped, by itself
                return
            target, count = DROPPED_TIME if is_time(name) else DROPPED, abs(count)
        if not self.counts:
            self._inbox.put(None)
        self.counts[target] = self.counts.get(target, 0) + count
        if self._thread is None:
            self._start()

    def leave(self, target: Target, count: int) -> None:
        """Put a count into the queue, for a caller that did not get the guard. Raises InvalidName."""
        _checked(target)
        self._inbox.put((target, count))

    def flush(self) -> None:
        """Send everything. Raises RedisUnavailable; then unanswered calls are kept."""
        with self._sending:
            try:
                self._flush()
            finally:
                self._inbox.put(None)  # makes the thread check whether anything is left

    def finish(self) -> None:
        """Send everything at the end of the process, unless all of Redis was just unavailable."""
        is_sent = False
        if (not self._is_away or self._was_answered) and self._sending.acquire(timeout=_LAST_WAIT):
            try:
                is_sent = self._try_flush()
            finally:
                self._sending.release()
        lost, microseconds = self._pending()
        if not is_sent and (lost or microseconds):
            time = f", and {microseconds / 1_000_000:,.6g} s of what was timed" if microseconds else ""
            logger.warning(
                "Redis does not answer at the end of this process; %s counts are lost%s.", f"{lost:,}", time
            )
            self.counts.clear()
            self._unanswered.clear()

    def close(self) -> None:
        """Drop unsent counts, and end the thread."""
        self._closed.set()
        self._inbox.put(None)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="counters", daemon=True)
        with suppress(RuntimeError):  # the interpreter ends
            self._thread.start()
        prepare()

    def _run(self) -> None:
        while True:
            if not (self.counts or self._unanswered):
                self._fold(self._inbox.get())
            if self._closed.wait(INTERVAL):
                return
            with self._sending:
                self._try_flush()

    def _try_flush(self) -> bool:
        """Send everything. Return whether that succeeded."""
        try:
            self._flush()
        except RedisNotPrivate:  # a test without a Redis: nobody asks for its counts
            self._take_all(but=())
            self._unanswered.clear()
        except Exception as error:  # noqa: BLE001  (wrong settings too: counting must harm nobody)
            if not self._is_away:
                logger.warning("Counts are kept in this process, to be sent later: %s", error)
            self._is_away = True
            return False
        if self._is_away:
            self._is_away = False
            logger.info("Counts are sent again.")
            self._fold((OUTAGES, 1))
        return True

    def _flush(self) -> None:
        self._was_answered = False
        if late := [call for call in self._unanswered if clock() - call.sent_at > PATIENCE]:
            self._give_up(late)
        failed = self._send(self._unanswered)
        if failed and not isinstance(get_client(), CLUSTERS):
            raise failed
        plan()  # wrong settings raise before anything is taken
        calls = additions(self._take_all(but={call.tag for call in self._unanswered}))
        for call in calls:
            call.sent_at = clock()
        self._unanswered += calls
        if failed := self._send(calls) or failed:
            raise failed

    def _take_all(self, but: Container[str]) -> dict[Target, int]:
        """Take all counts, except for the buckets *but*, whose last calls are not answered yet."""
        self._fold()
        with self._holding():
            counts, self.counts = self.counts, {}
            if but:
                kept = self.counts = {
                    target: count for target, count in counts.items() if tag_of(target) in but
                }
                counts = {target: count for target, count in counts.items() if target not in kept}
        return counts

    def _fold(self, *first: tuple[Target, int] | None) -> None:
        late = [*first]
        with suppress(Empty):
            while True:
                late.append(self._inbox.get_nowait())
        with self._holding():
            for target, number in filter(None, late):
                self.counts[target] = self.counts.get(target, 0) + number

    def _send(self, calls: Iterable[Addition]) -> Exception | None:
        """Send these unanswered calls. Return the error of an unavailable node; the other nodes get their counts."""
        outcomes: list[tuple[Addition, Any]] = []
        calls, failed = [*calls], None
        for script in (ADD, SUM):
            if mine := [each for each in calls if each.source.script is script]:
                said = at_once(script.aoutcomes(get_client(), [each.call for each in mine]))
                outcomes += zip(mine, said, strict=True)
        for call, outcome in outcomes:
            if isinstance(outcome, Exception):
                failed = failed or outcome
                continue
            self._was_answered = True
            try:
                call.check(outcome)
            except CountRefused as error:
                logger.error("%s Counts for it are dropped.", error)
                self._give_up([call])
                continue
            call.is_over()
            self._unanswered = [each for each in self._unanswered if each is not call]
        return failed

    def _give_up(self, calls: list[Addition]) -> None:
        """Drop these calls, because they might count twice, or be refused again, if they were sent again."""
        with self._holding():
            for name, sizes in (
                (DROPPED, [call.size for call in calls]),
                (DROPPED_TIME, [call.microseconds for call in calls]),
            ):
                if any(sizes):
                    self.counts[name] = self.counts.get(name, 0) + sum(sizes)
        for call in calls:
            call.is_over()
        self._unanswered = [call for call in self._unanswered if call not in calls]

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Hold the guard, or a new one if an exception in a signal handler left the old one locked."""
        guard = self.guard
        if not guard.acquire(timeout=_LONGEST_HOLD):
            guard = threading.Lock()
            guard.acquire()
            self.guard = guard
        try:
            yield
        finally:
            guard.release()

    def _pending(self) -> tuple[int, int]:
        lost = {
            False: sum(call.size for call in self._unanswered),
            True: sum(call.microseconds for call in self._unanswered),
        }
        for target, count in self.counts.items():
            if not isinstance(target, tuple):
                lost[is_time(target)] += abs(count)
        return lost[False], lost[True]


def _checked(target: Target) -> str:
    """Return the name of what is added to. Raises InvalidName for one that no counter can have."""
    name = name_of(target)
    return name if is_summed(target) else check_name("counter", name)


_buffer = Buffer()


def count(name: str, count: int = 1) -> None:
    """
    Add *count* to the counter *name* in this process, as Counter.count() does. It never waits. Raises InvalidName and
    InvalidValue, and nothing else.
    """
    if count is not _ONE:
        check_count(count)
    if FORKS_IN_C:
        notice()
    buffer = _buffer
    guard = buffer.guard
    if not guard.acquire(False):
        buffer.leave(name, count)
        return
    try:
        buffer.counts[name] += count
    except (KeyError, TypeError):
        buffer.begin(name, count)
    finally:
        guard.release()


def measure(name: str, value: int) -> None:
    """
    Add *value* to the counter *name* and to its histogram, in this process: a duration in microseconds, a size in
    bytes. The name says the unit: "pay-us:card", "upload-bytes". It never waits. Raises InvalidName and InvalidValue,
    and nothing else.
    """
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise InvalidValue(f"The value is {value!r}; what is measured is a whole number, from 0 to 2^53.")
    measure_valid(name, value)


def measure_valid(name: str, value: int) -> None:
    """Do what measure() does with a value that is known to be valid."""
    add_up(((name,), value), (((name, bucket_of(value)),), 1))


def add_up(*counts: tuple[Sequence[Target], int]) -> None:
    """Add to targets in one go: pairs of some, which are valid, and what each of these gets. It never waits."""
    if FORKS_IN_C:
        notice()
    buffer = _buffer
    guard = buffer.guard
    if not guard.acquire(False):
        for targets, count in counts:
            for target in targets:
                buffer.leave(target, count)
        return
    try:
        known = buffer.counts
        for targets, count in counts:
            for target in targets:
                if target in known:
                    known[target] += count
                else:
                    buffer.begin(target, count)
    finally:
        guard.release()


def flush() -> None:
    """Send the counts and sums of this process now. Raises RedisUnavailable; then they are sent later."""
    notice()
    _buffer.flush()


async def aflush() -> None:
    """Send the counts of this process now, as flush() does, in a thread."""
    await asyncio.to_thread(flush)


def prepare() -> None:
    """Arrange that counts are sent when this process ends; if the main thread calls this, on SIGTERM as well."""
    at_end(finish)


def forget() -> None:
    """Drop the unsent counts and sums of this process, for tests that empty Redis."""
    global _buffer
    before, _buffer = _buffer, Buffer()
    before.close()
    forget_sources()


def finish() -> None:
    """Send the counts of this process at its end. Counts that cannot be sent are lost, which is logged."""
    notice()
    _buffer.finish()


def _begin_anew() -> None:
    global _buffer
    _buffer = Buffer()


in_child(_begin_anew)
