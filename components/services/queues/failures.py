"""
Failures: why the dead tasks of a queue, or of all queues, have died, and which of them have died alike.

Tasks have died alike if they have the same name and the same class of error, and messages that differ only in
numbers, ids and quoted parts. Nothing is stored for this. A look reads a bounded number of dead tasks, the latest
first, in scripts of a few milliseconds that leave the arguments in Redis; the next look continues from there.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import blake2b

from components.kit.client import get_client
from components.kit.decoding import instant_of, text_of
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.services.queues.facts import Look, TaskFailure
from components.services.queues.formats import UNSAID
from components.services.queues.keys import QueueKeys
from components.services.queues.queue import place_of, read_place

FAILURES = Script("queues/failures")
MOST_QUEUES = 1_000  # that one look merges, as many as the overview looks at
_AT_ONCE = 500  # tasks that one call of the script looks at

#: What differs between messages that say the same: quoted parts, ids, addresses and numbers. Numbers that say what
#: went wrong stay: "[Errno 111]", "HTTP 503", "status 404".
_DIFFERS = re.compile(
    r"""(?P<stays>\b(?:errno|https?|status|code|error)[ :=]*\d+)"""
    r"""|"[^"]*"|(?<!\w)'[^']*'|\b0x[0-9a-f]+|\b[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\b|\d+""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Place:
    """Where a dead task is. The latest come first; of the same millisecond, those of the first queue by name."""

    queue: str
    id: str
    score: float

    @classmethod
    def read(cls, text: str) -> Place | None:
        """Return the place that str() has written, or None if it is none."""
        score, place = read_place(text) or (0.0, "")
        task_id, blank, queue = place.partition(" ")
        return cls(queue, task_id, score) if blank else None

    def __str__(self) -> str:
        return place_of(f"{self.id} {self.queue}", self.score)

    @property
    def rank(self) -> tuple[float, str]:
        return -self.score, self.queue

    def follows(self, other: Place) -> bool:
        return self.rank > other.rank or (self.rank == other.rank and self.id < other.id)


@dataclass(frozen=True)
class Failure:
    """Why one task has died. What cannot be read is ""."""

    place: Place
    name: str
    sensitive: bool
    error: TaskFailure

    def without_contents(self) -> Failure:
        """Return the failure without the traceback, which has the message."""
        return replace(self, error=replace(self.error, traceback=""))

    @property
    def id(self) -> str:
        return self.place.id

    @property
    def died_at(self) -> datetime:
        return instant_of(self.place.score)

    @cached_property
    def group(self) -> str:
        """The same for all tasks that have died alike."""
        return _group(self.name, self.error.exception_class_path, self.error.message)


@dataclass(frozen=True)
class FailureGroup:
    """Tasks that have died alike."""

    latest: Failure
    first: Failure
    count: int
    #: The queues of these tasks.
    queues: set[str]
    #: What their messages have in common.
    message: str


class Failures:
    """The dead tasks of *queues* of *alias*. Every method raises RedisUnavailable when Redis does not answer."""

    def __init__(self, alias: str, *queues: str) -> None:
        self._alias = alias
        self._queues = queues

    def look(
        self,
        *,
        most: int,
        after: str = "",
        cut: Callable[[Failure], Failure] = lambda failure: failure,
        group: str | None = None,
    ) -> Look[Failure]:
        """
        Look at *most* dead tasks, the latest first. Return their failures, or only those of *group*.

        *after* is Look.after of the look that this one continues. *cut* hides what the caller may not see.
        """
        offset, places = self._places(most, Place.read(after))
        found = [
            failure for failure in map(cut, self._read(places)) if group is None or failure.group == group
        ]
        return Look(found, len(places), offset, str(places[-1]) if len(places) == most else "")

    def _places(self, most: int, after: Place | None) -> tuple[int, list[Place]]:
        """
        Return the first *most* places that follow *after*, and how many do not.

        Each queue is read page by page, until its next task would come after all that are returned.
        """
        bound = str(after.score) if after else "+inf"
        offset, found, unread = 0, list[Place](), self._queues
        start, size = 0, max(2, most // max(1, len(unread)))
        while unread:
            with redis_errors(), get_client().pipeline(transaction=False) as pipe:
                for queue in unread:
                    key = QueueKeys(self._alias, queue).dead
                    pipe.zcount(key, f"({bound}", "+inf")
                    pipe.zrevrangebyscore(key, bound, "-inf", start, size, withscores=True)
                answers = pipe.execute()
            pages = [
                [Place(queue, text_of(task_id), score) for task_id, score in rows]
                for queue, rows in zip(unread, answers[1::2], strict=True)
            ]
            following = [place for page in pages for place in page if not after or place.follows(after)]
            offset += sum(map(len, pages)) - len(following) + (0 if start else sum(answers[::2]))
            # Places of equal rank are of one queue, and already in its order.
            found = sorted([*found, *following], key=lambda place: place.rank)[:most]
            unread = tuple(
                page[-1].queue
                for page in pages
                if len(page) == size and (len(found) < most or found[-1].follows(page[-1]))
            )
            start, size = start + size, 4 * size
        return offset, found

    def _read(self, places: Sequence[Place]) -> Iterator[Failure]:
        """Yield the failures of those of *places* at which a task is still dead."""
        keys, at = QueueKeys(self._alias, ""), 0
        while some := places[at : at + _AT_ONCE]:
            given = [part for place in some for part in (place.queue, place.id)]
            rows = at_once(FAILURES.run(get_client(), keys, given=given))
            at += len(rows)
            for place, row in zip(some, rows, strict=False):
                if row:
                    yield _read(place, *row)


def groups(failures: Iterable[Failure]) -> list[FailureGroup]:
    """Return the groups of *failures*, of which the latest comes first; the largest group comes first."""
    by_group = defaultdict[str, list[Failure]](list)
    for failure in failures:
        by_group[failure.group].append(failure)
    found = []
    for some in by_group.values():
        latest, messages = some[0], {each.error.message for each in some}
        message = latest.error.message if len(messages) == 1 else alike(latest.error.message)
        found.append(FailureGroup(latest, some[-1], len(some), {each.place.queue for each in some}, message))
    return sorted(found, key=lambda group: -group.count)


@lru_cache(maxsize=4_096)
def _group(name: str, kind: str, message: str) -> str:
    parts = name, kind, alike(message)
    return blake2b("\n".join(parts).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def alike(message: str) -> str:
    """Return *message* with "…" in place of what differs between messages that say the same."""
    return _DIFFERS.sub(lambda match: match["stays"] or "…", message)


def _read(place: Place, name: bytes, sensitive: int, state: bytes, kind: bytes, traceback: bytes) -> Failure:
    unsaid = UNSAID.get(state.decode(errors="replace"))
    error = unsaid or TaskFailure(_read_text(kind), _read_text(traceback))
    return Failure(place, _read_text(name), bool(sensitive), error)


@lru_cache(maxsize=1_024)
def _read_text(written: bytes) -> str:
    """Return a text from its JSON, or from its first line feed on if the start is missing; "" if it is no JSON."""
    for text in (written, written.partition(rb"\n")[2]):
        try:
            return str(json.loads(b'"%b"' % text))
        except ValueError:
            continue
    return ""
