"""
RowWorker: loads cached rows that are due, in batches: one claim, one query for each model, one write (chapter 2.4).

Any number of them may run. A row that fails is due again later and stops no other; a database that does not answer
gives its rows back for a while, the longer the more often. While Redis is away the loop says so once and goes on when
it is back; what was loaded is loaded again then. One that dies leaves claims, which end after their lease.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from components.exceptions import RedisUnavailable, RowsUnavailable
from components.kit.worker.outage import Outage, sentence
from components.kit.worker.pulse import Pulse
from components.kit.worker.signals import Killed, Signals
from components.services.rows import AT_A_TIME, LEASE, Claims, Loader, member
from components.services.rows.worker.batches import Batch, Source, by_name

logger = logging.getLogger(__name__)

_LONGEST_NAP = 0.1  # seconds between two looks: what is scheduled or invalidated meanwhile waits for so long
#: Seconds for which rows are given back whose database does not answer.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_PULSE = 5.0  # seconds between two touches of the file


class RowWorker:
    """Loads the rows of the *sources*, by their names, *batch* at a time."""

    def __init__(
        self, sources: Mapping[str, Source], *, batch: int = AT_A_TIME, lease: float = LEASE
    ) -> None:
        self.loader = Loader(lease=lease)
        self.pulse: Pulse | None = None
        #: Its end is that of the process.
        self.ends_process = False
        self.outage = Outage(harmless=lease)
        self._sources, self._batch = sources, batch
        self._stop, self._wake = threading.Event(), threading.Event()
        self._is_quiet = False
        self._done = 0
        self._pauses: dict[str, float] = {}
        self._next_pulse = 0.0
        #: Why the last claim could not ask all nodes of a cluster.
        self._unasked: RedisUnavailable | None = None

    # These are safe from signal handlers and other threads.

    def stop(self) -> None:
        """End when what is claimed is stored."""
        self._stop.set()
        self._wake.set()

    def quiet(self) -> None:
        """Claim nothing more until stopped."""
        self._is_quiet = True

    def tell(self) -> None:
        self._wake.set()
        logger.info("%d rows loaded so far.", self._done)

    def run(self) -> int:
        """Work until stopped; the exit code. Raises RedisUnavailable only if Redis does not answer at the start."""
        self.loader.claim(0)
        pause = 0.0
        try:
            with Signals(stop=self.stop, quiet=self.quiet, tell=self.tell, ends_process=self.ends_process):
                while not self._stop.is_set():
                    self._sleep(pause)
                    pause = self._try_tick()
        except Killed:
            logger.warning("Stopping at once; what was claimed is loaded by others when its lease ends.")
        return 0

    def tick(self) -> float:
        """Load what is due; the seconds until the next look."""
        if self.pulse and time.monotonic() >= self._next_pulse:
            self.pulse.beat()
            self._next_pulse = time.monotonic() + _PULSE
        self._unasked = None
        if self._is_quiet or self._stop.is_set():
            return _LONGEST_NAP
        claims = self.loader.claim(self._batch)
        if len(claims):
            self.handle(claims)
        self._unasked = claims.error
        return _LONGEST_NAP if claims.pause is None else min(_LONGEST_NAP, claims.pause)

    def handle(self, claims: Claims) -> None:
        """Load what is claimed, one query for each name, and tell what became of it."""
        batch, began_at = Batch(), time.monotonic()
        for name, keys in by_name(claims).items():
            self._load(name, keys, claims, batch)
            if time.monotonic() - began_at > self.loader.lease / 3:
                self._tell(claims, batch)  # what is loaded shall not wait for the rest
                batch = Batch()
        self._tell(claims, batch)

    def _tell(self, claims: Claims, batch: Batch) -> None:
        if batch.rows:
            refused = self.loader.store(claims.claims, batch.rows)
            self._done += len(batch.rows) - len(refused)
        if batch.errors:
            self.loader.fail(claims.claims, batch.errors)

    def _load(self, name: str, keys: Sequence[str], claims: Claims, batch: Batch) -> None:
        source = self._sources.get(name)
        if source is None:
            batch.fail(name, keys, f"No model has rows called {name!r} in this release.")
            return
        try:
            batch.take(name, keys, source.shape, source.load_all(keys))
        except RowsUnavailable as error:
            pause = self._longer_pause(name)
            logger.warning("%s Trying again in %.1f s.", sentence(error), pause)
            self.loader.release(claims.claims, [member(name, key) for key in keys], pause=pause)
        except Exception as error:
            logger.exception("The rows of %s cannot be loaded.", name)
            batch.fail(name, keys, f"{type(error).__name__}: {error}")
        else:
            self._pauses.pop(name, None)

    def _longer_pause(self, name: str) -> float:
        self._pauses[name] = min(_LONGEST_PAUSE, 2 * self._pauses.get(name, _FIRST_PAUSE / 2))
        return self._pauses[name]

    def _try_tick(self) -> float:
        try:
            pause = self.tick()
        except RedisUnavailable as error:
            return self.outage.goes_on(error)
        if self._unasked:  # a node of a cluster: those on the others wait for nothing
            self.outage.goes_on(self._unasked)
        else:
            self.outage.is_over()
        return pause

    def _sleep(self, seconds: float) -> None:
        self._wake.wait(seconds)
        self._wake.clear()
