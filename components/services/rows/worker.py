"""
RowWorker: loads cached rows that are due, in batches: one claim, one query for each model, one write (chapter 2.4).

Any number of workers may run. A row that fails is due again later and stops no other row. If a database does not
answer, its rows are given back for a while, which grows with each repetition. While Redis is unavailable, the loop
logs this once, and continues when Redis is back. Then it reloads the rows that it could not store. A worker that dies
leaves claims, which end after their lease.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from components.exceptions import RowsUnavailable
from components.kit.keyspace import BUCKETS
from components.services.rows import AT_A_TIME, LEASE, Claims, Loader, Shape, Stored, name_and_key
from components.services.rows.loader import Loaded, to_store
from components.workers.loop import Loop
from components.workers.outage import sentence

logger = logging.getLogger(__name__)

#: Most seconds between two looks, and so the longest wait of newly scheduled or invalidated rows.
_LONGEST_NAP = 1.0
#: Seconds between two claims of all buckets, which also find what a clock that was ahead has scheduled.
_SWEEP = 60.0
#: Seconds for which rows are given back if their database does not answer.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


class Source(Protocol):
    """The source of the rows of one name."""

    @property
    def shape(self) -> Shape: ...

    def load_all(self, keys: Sequence[str]) -> Loaded:
        """Load these rows; those that it neither loads nor fails are deleted. Raises RowsUnavailable."""


@dataclass
class _Batch:
    """What to tell Redis of claimed rows, by member."""

    rows: dict[str, Stored] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


class RowWorker(Loop):
    """Loads the rows of the *sources*, by their names, *batch* at a time."""

    def __init__(
        self, sources: Mapping[str, Source], *, batch: int = AT_A_TIME, lease: float = LEASE
    ) -> None:
        super().__init__(lease=lease)
        self.loader = Loader(lease=lease)
        self._sources, self._batch = sources, batch
        self._done = 0
        self._pauses: dict[str, float] = {}
        self._sweep_at = self._look_at = 0.0

    @property
    def id(self) -> str:
        return self.loader.id

    def begin(self) -> None:
        self.loader.claim(0)

    def describe_running(self) -> Iterable[str]:
        yield f"{self._done} rows loaded so far."

    def tick(self) -> float:
        """Load the rows that are due. Return the seconds until the next look."""
        self.partly_away = None
        if not self.may_claim:
            return _LONGEST_NAP
        now, tags = time.monotonic(), self.loader.due()
        if now >= self._sweep_at:
            tags, self._sweep_at = [*BUCKETS], now + _SWEEP
        elif not tags or now >= self._look_at:
            self.loader.look()
            tags, self._look_at = self.loader.due(), now + _LONGEST_NAP
        if tags:
            claims = self.loader.claim(self._batch, tags)
            if len(claims):
                self.handle(claims)
                self.loader.look([claim.tag for claim in claims.claims])  # they are due again
            self.partly_away = claims.error
        return min(_LONGEST_NAP, self.loader.pause)

    def handle(self, claims: Claims) -> None:
        """Load the claimed rows, with one query for each name. Store them, or record their errors."""
        batch, began_at = _Batch(), time.monotonic()
        by_name = defaultdict[str, list[str]](list)
        for claim in claims.claims:
            for each in claim.members:
                by_name[name_and_key(each)[0]].append(each)
        for name, members in by_name.items():
            self._load(name, members, claims, batch)
            if time.monotonic() - began_at > self.loader.lease / 3:
                self._tell(claims, batch)  # rows that are loaded do not wait for the rest
                batch = _Batch()
        self._tell(claims, batch)

    def _tell(self, claims: Claims, batch: _Batch) -> None:
        if batch.rows:
            refused = self.loader.store(claims.claims, batch.rows)
            self._done += len(batch.rows) - len(refused)
        if batch.errors:
            self.loader.fail(claims.claims, batch.errors)

    def _load(self, name: str, members: Sequence[str], claims: Claims, batch: _Batch) -> None:
        source = self._sources.get(name)
        if source is None:
            unknown = f"No model has rows called {name!r} in this release."
            batch.errors |= dict.fromkeys(members, unknown)
            return
        keys = {name_and_key(each)[1]: each for each in members}
        try:
            loaded = source.load_all(list(keys))
            there = [each for key, each in keys.items() if key not in loaded.errors]
            rows, refused = to_store(source.shape, there, loaded.values)
        except RowsUnavailable as error:
            pause = self._longer_pause(name)
            logger.warning("%s Trying again in %.1f s.", sentence(error), pause)
            self.loader.release(claims.claims, members, pause=pause)
        except Exception as error:
            logger.exception("The rows of %s cannot be loaded.", name)
            batch.errors |= dict.fromkeys(members, f"{type(error).__name__}: {error}")
        else:
            self._pauses.pop(name, None)
            batch.rows |= rows
            batch.errors |= {each: str(error) for each, error in refused.items()}
            batch.errors |= {keys[key]: error for key, error in loaded.errors.items()}

    def _longer_pause(self, name: str) -> float:
        self._pauses[name] = min(_LONGEST_PAUSE, 2 * self._pauses.get(name, _FIRST_PAUSE / 2))
        return self._pauses[name]
