"""
RowWorker: loads cached rows that are due, in batches: one claim, one query for each model, one write (chapter 2.4).

Any number of workers may run. A row that fails is due again later and stops no other row. If a database does not
answer, its rows are given back for a while, the longer the more often. While Redis is away the loop logs that once,
and goes on when it is back; then what was loaded is loaded again. A worker that dies leaves claims, which end after
their lease.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from components.exceptions import RedisUnavailable, RowNotSerializable, RowsUnavailable, RowTooLarge
from components.kit.worker.outage import Outage, sentence
from components.kit.worker.pulse import Pulse
from components.kit.worker.signals import Killed, Signals
from components.services.rows import AT_A_TIME, LEASE, Claims, Loader, Shape, Stored, member, name_and_key

logger = logging.getLogger(__name__)

_LONGEST_NAP = 0.1  # seconds between two looks: for so long waits what is scheduled or invalidated meanwhile
#: Seconds for which rows are given back if their database does not answer.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_PULSE = 5.0  # seconds between two touches of the file


class Loaded(Protocol):
    """What became of the rows that were asked for. Those in neither are deleted."""

    values: dict[str, Sequence[Any]]
    errors: dict[str, str]


class Source(Protocol):
    """Where the rows of one name come from."""

    @property
    def shape(self) -> Shape: ...

    def load_all(self, keys: Sequence[str]) -> Loaded:
        """Load these rows. Raises RowsUnavailable."""


@dataclass
class _Batch:
    """What is to be stored of the rows that were claimed, and what has failed, by member."""

    rows: dict[str, Stored] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def fail(self, name: str, keys: Sequence[str], error: str) -> None:
        self.errors.update((member(name, key), error) for key in keys)

    def take(self, name: str, keys: Sequence[str], shape: Shape, loaded: Loaded) -> None:
        for key in keys:
            each = member(name, key)
            if key in loaded.errors:
                self.errors[each] = loaded.errors[key]
            elif key not in loaded.values:
                self.rows[each] = Stored(False, shape.deleted)
            else:
                try:
                    self.rows[each] = Stored(True, shape.encode(each, loaded.values[key]))
                except (RowNotSerializable, RowTooLarge) as error:
                    self.errors[each] = str(error)


class RowWorker:
    """Loads the rows of the *sources*, by their names, *batch* at a time."""

    def __init__(
        self, sources: Mapping[str, Source], *, batch: int = AT_A_TIME, lease: float = LEASE
    ) -> None:
        self.loader = Loader(lease=lease)
        self.pulse: Pulse | None = None
        #: Whether the process ends with it.
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

    # These may be called by signal handlers and other threads.

    def stop(self) -> None:
        """End as soon as what is claimed is stored."""
        self._stop.set()
        self._wake.set()

    def quiet(self) -> None:
        """Claim nothing more until stopped."""
        self._is_quiet = True

    def tell(self) -> None:
        self._wake.set()
        logger.info("%d rows loaded so far.", self._done)

    def run(self) -> int:
        """Work until stopped. Return the exit code. Raises RedisUnavailable if Redis does not answer at the start."""
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
        """Load what is due, and return the seconds until the next look."""
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
        """Load what is claimed, with one query for each name, and store it or note its errors."""
        batch, began_at = _Batch(), time.monotonic()
        for name, keys in _by_name(claims).items():
            self._load(name, keys, claims, batch)
            if time.monotonic() - began_at > self.loader.lease / 3:
                self._tell(claims, batch)  # what is loaded shall not wait for the rest
                batch = _Batch()
        self._tell(claims, batch)

    def _tell(self, claims: Claims, batch: _Batch) -> None:
        if batch.rows:
            refused = self.loader.store(claims.claims, batch.rows)
            self._done += len(batch.rows) - len(refused)
        if batch.errors:
            self.loader.fail(claims.claims, batch.errors)

    def _load(self, name: str, keys: Sequence[str], claims: Claims, batch: _Batch) -> None:
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


def _by_name(claims: Claims) -> dict[str, list[str]]:
    """Return the keys of what is claimed, by the name of the cache."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for claim in claims.claims:
        for each in claim.members:
            name, key = name_and_key(each)
            keys[name].append(key)
    return keys
