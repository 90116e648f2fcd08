"""
Failures: why the dead tasks of a queue have died, and which of them have died alike.

Tasks have died alike if they have the same name and the same class of error, and messages that differ only in
numbers, ids and quoted parts. Nothing is stored for this. A look reads a bounded number of dead tasks, the latest
first, in scripts of a few milliseconds that leave the arguments in Redis; the next look continues from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.services.queues.facts import TaskFailure
from components.services.queues.formats import UNSAID, instant_of_ms
from components.services.queues.keys import QueueKeys
from components.services.queues.queue import TaskQueue, place_of

FAILURES = Script("queues/failures")
_AT_ONCE = 500  # tasks that one call of the script looks at

#: What differs between messages that say the same: quoted parts, ids, addresses and numbers. Numbers that say what
#: went wrong stay: "[Errno 111]", "HTTP 503", "status 404".
_DIFFERS = re.compile(
    r"""(?P<stays>\b(?:errno|https?|status|code|error)[ :=]*\d+)"""
    r"""|"[^"]*"|(?<!\w)'[^']*'|\b0x[0-9a-f]+|\b[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\b|\d+""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Failure:
    """Why one task has died. What cannot be read is ""."""

    id: str
    score: float
    name: str
    sensitive: bool
    error: TaskFailure

    def without_contents(self) -> Failure:
        """Return the failure without the traceback, which has the message."""
        return replace(self, error=replace(self.error, traceback=""))

    @property
    def died_at(self) -> datetime:
        return instant_of_ms(self.score)

    @property
    def group(self) -> str:
        """The same for all tasks that have died alike."""
        return _group(self.name, self.error.exception_class_path, self.error.message)


@dataclass(frozen=True)
class FailureLook:
    """What a bounded look at the dead tasks of a queue has found."""

    found: list[Failure]
    #: How many tasks were looked at, and how many later ones there are.
    looked_at: int
    offset: int
    #: The place of the last one, for the look that continues from there; "" at the end.
    after: str


@dataclass
class FailureGroup:
    """Tasks that have died alike."""

    latest: Failure
    first: Failure
    message: str
    count: int = 1

    def add(self, failure: Failure) -> None:
        """Add an earlier failure."""
        self.count += 1
        self.first = failure
        if self.message != failure.error.message:
            self.message = alike(self.message)


class Failures:
    """The dead tasks of *queue*. Every method raises RedisUnavailable when Redis does not answer."""

    def __init__(self, alias: str, queue: str) -> None:
        self._alias = alias
        self._queue = queue

    def look(
        self,
        *,
        most: int,
        after: str = "",
        cut: Callable[[Failure], Failure] = lambda failure: failure,
        group: str | None = None,
    ) -> FailureLook:
        """
        Look at *most* dead tasks, the latest first. Return their failures, or only those of *group*.

        *after* is FailureLook.after of the look that this one continues. *cut* hides what the caller may not see.
        """
        offset = TaskQueue(self._alias).offset_after(self._queue, "dead", after)
        found, looked_at = list[Failure](), 0
        while looked_at < most:
            page = self._page(offset + looked_at, min(_AT_ONCE, most - looked_at))
            if not page:
                return FailureLook(found, looked_at, offset, "")
            looked_at += len(page)
            after = place_of(page[-1].id, page[-1].score)
            found += [each for each in map(cut, page) if group is None or each.group == group]
        return FailureLook(found, looked_at, offset, after)

    def _page(self, offset: int, most: int) -> list[Failure]:
        keys = QueueKeys(self._alias, self._queue)
        rows = at_once(FAILURES.run(get_client(), keys, offset=offset, most=most))
        return [_read(*row) for row in rows]


def groups(failures: Iterable[Failure]) -> list[FailureGroup]:
    """Return the groups of *failures*, of which the latest comes first; the largest group comes first."""
    found: dict[str, FailureGroup] = {}
    for failure in failures:
        if group := found.get(failure.group):
            group.add(failure)
        else:
            found[failure.group] = FailureGroup(failure, failure, failure.error.message)
    return sorted(found.values(), key=lambda group: -group.count)


@lru_cache(maxsize=4_096)
def _group(name: str, kind: str, message: str) -> str:
    parts = name, kind, alike(message)
    return blake2b("\n".join(parts).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def alike(message: str) -> str:
    """Return *message* with "…" in place of what differs between messages that say the same."""
    return _DIFFERS.sub(lambda match: match["stays"] or "…", message)


def _read(
    task_id: bytes, score: bytes, name: bytes, sensitive: int, state: bytes, kind: bytes, traceback: bytes
) -> Failure:
    unsaid = UNSAID.get(state.decode(errors="replace"))
    error = unsaid[0] if unsaid else TaskFailure(_read_text(kind), _read_text(traceback))
    return Failure(text_of(task_id), float(score), _read_text(name), bool(sensitive), error)


@lru_cache(maxsize=1_024)
def _read_text(written: bytes) -> str:
    """Return a text from its JSON, or from its first line feed on if the start is missing; "" if it is no JSON."""
    for text in (written, written.partition(rb"\n")[2]):
        try:
            return str(json.loads(b'"%b"' % text))
        except ValueError:
            continue
    return ""
