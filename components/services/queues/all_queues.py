"""
AllQueues: the tasks in a state of all queues of a backend alias, in one order.

A script merges the lists of the queues. All of them lie in one slot, and it reads of each only what comes first, so a
look costs what it returns and a few microseconds for each queue. A task is named by its place, "id queue", because
what is done with tasks is done in one queue after the other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from math import isinf

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.services.queues.facts import Look, QueueStats, State, TaskInfo
from components.services.queues.keys import QueueKeys
from components.services.queues.queue import TaskQueue, bounds_of, place_of, read_place

MERGE = Script("queues/merge")
MOST_QUEUES = 1_000  # that one look merges, as many as the overview looks at
_AT_ONCE = 1_000  # tasks that one call of the script returns: 8 ms of the server for a thousand queues


@dataclass(frozen=True)
class Place:
    """Where a task is."""

    queue: str
    id: str
    score: float

    def __str__(self) -> str:
        return placed_in(self.id, self.queue)


@dataclass(frozen=True)
class Places:
    """The first tasks of a merged list."""

    found: list[Place]
    #: How many tasks come before these.
    offset: int
    #: Where the next ones begin; "" at the end.
    after: str

    @property
    def first(self) -> int:
        """Return the number of the first of these in the whole list, from 1 on."""
        return self.offset + 1

    @property
    def last(self) -> int:
        """Return the number of the last of these in the whole list."""
        return self.offset + len(self.found)


class AllQueues:
    """The queues of *alias*, with the sizes that they had at first. Methods raise RedisUnavailable."""

    def __init__(self, alias: str) -> None:
        self._service = TaskQueue(alias)

    @cached_property
    def stats(self) -> list[QueueStats]:
        """The sizes of each queue."""
        return self._service.all_stats()

    @property
    def totals(self) -> QueueStats:
        """The sizes of all queues together, which have no name."""
        ages = [each.oldest_age for each in self.stats if each.oldest_age is not None]
        return QueueStats(
            name="",
            ready=sum(each.ready for each in self.stats),
            delayed=sum(each.delayed for each in self.stats),
            running=sum(each.running for each in self.stats),
            dead=sum(each.dead for each in self.stats),
            successful=sum(each.successful for each in self.stats),
            oldest_age=max(ages, default=None),
            next_due_at=None,
            paused=False,
        )

    def holding(self, state: State) -> list[QueueStats]:
        """Return the sizes of the queues that have tasks in *state*; the first MOST_QUEUES are merged."""
        return [each for each in self.stats if getattr(each, state)]

    def reached(self, state: State) -> int:
        """Return how many tasks in *state* there are in the queues that are merged."""
        return sum(getattr(each, state) for each in self.holding(state)[:MOST_QUEUES])

    def places(
        self,
        state: State,
        *,
        most: int,
        after: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        queues: Sequence[str] | None = None,
    ) -> Places:
        """
        Return where the first tasks in *state* are, *most* at most: those of *queues*, or of the first thousand
        queues that have any.

        The rest is as in TaskQueue.look().
        """
        names = queues or [each.name for each in self.holding(state)[:MOST_QUEUES]]
        found, offset = list[Place](), None
        first, last = ("" if isinf(score) else score for score in bounds_of(state, since, until))
        while len(found) < most:
            size = min(_AT_ONCE, most - len(found))
            score, task_id, queue = _read_after(after)
            answer = at_once(
                MERGE.run(
                    get_client(),
                    QueueKeys(self._service.alias, ""),
                    state=state,
                    most=size,
                    first=first,
                    last=last,
                    after=score,
                    id=task_id if queue in names else "",
                    done=bisect_left(names, queue),
                    names=names,
                )
            )
            offset = answer[0] if offset is None else offset
            rows = zip(answer[1::3], answer[2::3], answer[3::3], strict=True)
            page = [Place(names[number - 1], text_of(each), float(at)) for number, each, at in rows]
            found += page
            if len(page) < size:
                return Places(found, offset or 0, "")
            after = place_of(str(page[-1]), page[-1].score)
        return Places(found, offset or 0, after)

    def read(self, state: State, places: Sequence[Place]) -> list[TaskInfo]:
        """Return the tasks at *places*, as TaskQueue.read() does."""
        queues = {place.id: place.queue for place in places}
        found = self._service.read("", state, [(place.id, place.score) for place in places])
        return [info if info.name else replace(info, queue=queues[info.id]) for info in found]

    def look(
        self,
        state: State,
        matches: Callable[[TaskInfo], bool],
        *,
        most: int,
        after: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Look:
        """Look at *most* tasks in *state* and return those that match, as TaskQueue.look() does."""
        places = self.places(state, most=most, after=after, since=since, until=until)
        found = [
            info
            for at in range(0, len(places.found), _AT_ONCE)
            for info in self.read(state, places.found[at : at + _AT_ONCE])
            if matches(info)
        ]
        return Look(found, len(places.found), places.offset, places.after)

    def present(self, states: Sequence[State], places: Sequence[str]) -> list[str]:
        """Return those of *places*, texts such as "id queue", at which a task is now in one of *states*."""
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            for place in places:
                task_id, _blank, queue = place.partition(" ")
                for state in states:
                    pipe.zscore(getattr(QueueKeys(self._service.alias, queue), state), task_id)
            scores = pipe.execute()
        many = len(states)
        return [
            place
            for number, place in enumerate(places)
            if any(score is not None for score in scores[number * many : (number + 1) * many])
        ]


def placed_in(task_id: str, queue: str) -> str:
    """Return the place of a task as text."""
    return f"{task_id} {queue}"


def by_queue(places: Iterable[str]) -> Mapping[str, list[str]]:
    """Return the ids of the tasks at *places*, texts such as "id queue", by their queues."""
    found: dict[str, list[str]] = {}
    for place in places:
        task_id, _blank, queue = place.partition(" ")
        found.setdefault(queue, []).append(task_id)
    return found


def _read_after(after: str) -> tuple[float | str, str, str]:
    """Return the score, the id and the queue of the task after which to go on; "" for each without one."""
    score, place = read_place(after) or ("", "")
    task_id, _blank, queue = place.partition(" ")
    return score, task_id, queue
