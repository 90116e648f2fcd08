"""The card of task queues: what waits, what runs, and which tasks need somebody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.kit.cards import MOST_LINES, Badge, Card, CardReading, Line, Link, Past, and_more, beyond
from components.kit.figures import Ask
from components.services.queues.backend import redis_aliases
from components.services.queues.facts import QueueStats, WorkerInfo, late_queues, saturated, taking, unserved
from components.services.queues.figures import ask_state, read_state
from components.services.queues.keys import BackendKeys
from components.services.queues.periodic_tasks import declared, late_ticks, tick_infos
from components.services.queues.ticks import Ticks
from components.templatetags.control_room import duration, grouped, legible

PAST = Past(
    "tasks:successful",
    ngettext_lazy(
        "%(count)s task succeeded in the last %(span)s",
        "%(count)s tasks succeeded in the last %(span)s",
        "number",
    ),
)

#: Seconds that a task may wait for a free slot: busy workers are no trouble as long as all get their turn.
_PATIENCE = 10.0
_EACH = 3  # questions for each alias


def card() -> CardReading:
    """Look at the queues, workers and periodic tasks of all aliases."""
    aliases = redis_aliases()
    entries = {alias: declared(alias) for alias in aliases}
    names = {alias: [entry.name for entry in entries[alias]] for alias in aliases}
    answers = yield [
        ask
        for alias in aliases
        for ask in (ask_state(alias), Ticks(alias).ask(names[alias]), _ask_number(BackendKeys(alias).names))
    ]
    seen = _Seen()
    lines = list[Line]()
    for alias, state, ticks, number in zip(
        aliases, answers[::_EACH], answers[1::_EACH], answers[2::_EACH], strict=True
    ):
        queues, workers = read_state(alias, state)
        now, last = Ticks(alias).read(names[alias], ticks)
        seen.add(queues, workers, number)
        lines += [
            *_unserved(alias, unserved(queues, workers)),
            *_saturated(alias, saturated(queues, workers), workers),
            *_late(alias, late_queues(queues, now)),
            *_late_ticks(alias, len(late_ticks(tick_infos(entries[alias], now, last), now))),
            *_dead(alias, [queue for queue in queues if queue.dead]),
        ]
    return seen.card(lines)


def _ask_number(key: str) -> Ask:
    return Ask(key, lambda pipe: pipe.scard(key))


@dataclass
class _Seen:
    """The queues and workers of all aliases."""

    queues: list[QueueStats] = field(default_factory=list)
    workers: list[WorkerInfo] = field(default_factory=list)
    #: The number of queues; of these a thousand of each alias are looked at.
    number: int = 0
    unserved: int = 0

    def add(self, queues: Sequence[QueueStats], workers: Sequence[WorkerInfo], number: int) -> None:
        self.queues += queues
        self.workers += [worker for worker in workers if worker.alive]
        self.number += number
        self.unserved += len(unserved(queues, workers))

    def card(self, lines: list[Line]) -> Card:
        serving = taking(self.workers)
        ready, dead = (sum(getattr(queue, state) for queue in self.queues) for state in ("ready", "dead"))
        oldest = max((queue.oldest_age or 0.0 for queue in self.queues if queue.ready), default=None)
        busy, slots = (sum(getattr(each, of) for each in serving) for of in ("running", "concurrency"))
        slots_in_use = gettext("%(busy)s of %(all)s") % {"busy": grouped(busy), "all": grouped(slots)}
        return Card(
            ready,
            ngettext("task waits", "tasks wait", ready),
            [
                (gettext("Oldest waits"), duration(oldest)),
                (gettext("Busy slots"), slots_in_use),
                (gettext("Delayed"), grouped(sum(queue.delayed for queue in self.queues))),
                (gettext("Dead"), grouped(dead)),
                (gettext("Queues"), self._number),
                (gettext("Workers"), grouped(len(serving))),
            ],
            lines,
            [*self._badges(dead)],
        )

    @property
    def _number(self) -> str:
        if self.number <= len(self.queues):
            return grouped(self.number)
        all_and_some = {"all": grouped(self.number), "some": grouped(len(self.queues))}
        return gettext("%(all)s; the figures are of %(some)s of them") % all_and_some

    def _badges(self, dead: int) -> Iterator[Badge]:
        if self.unserved:
            text = ngettext(
                "%(count)s queue without a worker", "%(count)s queues without a worker", self.unserved
            )
            yield Badge(text % {"count": grouped(self.unserved)})
        if dead:
            text = ngettext("%(count)s dead task", "%(count)s dead tasks", dead)
            yield Badge(text % {"count": grouped(dead)}, is_serious=False)


def _unserved(alias: str, queues: Sequence[QueueStats]) -> list[Line]:
    def said(queue: QueueStats) -> str:
        text = ngettext(
            "%(count)s task waits in the queue %(queue)s, for %(age)s, and no worker serves this queue.",
            "%(count)s tasks wait in the queue %(queue)s, the oldest for %(age)s, and no worker serves this queue.",
            queue.ready,
        )
        return text % _about(queue, queue.ready)

    found = sorted(queues, key=lambda queue: -(queue.oldest_age or 0.0))
    lines = [
        Line(
            said(queue),
            _tasks(gettext("Waiting tasks"), alias, queue.name, "ready"),
            command=f"manage.py runworker --backend {alias} -q {legible(queue.name)}",
        )
        for queue in found[:MOST_LINES]
    ]
    more = ngettext(
        "Nobody serves %(count)s more queue in which tasks wait.",
        "Nobody serves %(count)s more queues in which tasks wait.",
        beyond(found),
    )
    return and_more(lines, found, Line(more % {"count": grouped(beyond(found))}))


def _saturated(alias: str, queues: Sequence[QueueStats], workers: Sequence[WorkerInfo]) -> list[Line]:
    oldest = max((queue.oldest_age or 0.0 for queue in queues), default=0.0)
    if oldest < _PATIENCE:
        return []
    waiting = sum(queue.ready for queue in queues)
    text = ngettext(
        "All slots of the workers are busy, and %(count)s task waits, for %(age)s.",
        "All slots of the workers are busy, and %(count)s tasks wait, the oldest for %(age)s.",
        waiting,
    )
    said = text % {"count": grouped(waiting), "age": duration(oldest)}
    first = max(queues, key=lambda queue: queue.oldest_age or 0.0)
    page = _tasks(gettext("Waiting tasks"), alias, first.name, "ready")
    return [Line(said, page, command=f"manage.py runworker --backend {alias}", is_serious=False)]


def _late(alias: str, queues: Sequence[QueueStats]) -> list[Line]:
    now, text = (
        datetime.now(UTC),
        gettext("Delayed tasks of the queue %(queue)s are late: the first was due %(age)s ago."),
    )
    found = sorted(queues, key=lambda queue: queue.next_due_at or now)
    lines = [
        Line(
            text
            % {
                "queue": legible(queue.name),
                "age": duration((now - (queue.next_due_at or now)).total_seconds()),
            },
            _tasks(gettext("Delayed tasks"), alias, queue.name, "delayed"),
            command=f"manage.py pollqueue --backend {alias}",
        )
        for queue in found[:MOST_LINES]
    ]
    more = ngettext(
        "Delayed tasks of %(count)s more queue are late.",
        "Delayed tasks of %(count)s more queues are late.",
        beyond(found),
    )
    return and_more(lines, found, Line(more % {"count": grouped(beyond(found))}))


def _late_ticks(alias: str, number: int) -> list[Line]:
    if not number:
        return []
    text = ngettext("%(count)s periodic task is late.", "%(count)s periodic tasks are late.", number)
    page = Link("periodic", gettext("Periodic tasks"))
    said = text % {"count": grouped(number)}
    return [Line(said, page, command=f"manage.py pollqueue --backend {alias}")]


def _dead(alias: str, queues: Sequence[QueueStats]) -> list[Line]:
    def said(queue: QueueStats) -> str:
        text = ngettext(
            "%(count)s task of the queue %(queue)s has failed for good.",
            "%(count)s tasks of the queue %(queue)s have failed for good.",
            queue.dead,
        )
        return text % _about(queue, queue.dead)

    found = sorted(queues, key=lambda queue: -queue.dead)
    lines = [
        Line(
            said(queue),
            Link("failures", gettext("Dead tasks"), alias=alias, queue=queue.name),
            Link(
                "resend", gettext("Send them again"), alias=alias, queue=queue.name, state="dead", scope="all"
            ),
            is_serious=False,
        )
        for queue in found[:MOST_LINES]
    ]
    more = ngettext(
        "%(count)s more queue has dead tasks.", "%(count)s more queues have dead tasks.", beyond(found)
    )
    return and_more(lines, found, Line(more % {"count": grouped(beyond(found))}, is_serious=False))


def _about(queue: QueueStats, count: int) -> dict[str, str]:
    return {"count": grouped(count), "queue": legible(queue.name), "age": duration(queue.oldest_age)}


def _tasks(label: str, alias: str, queue: str, state: str) -> Link:
    return Link("tasks", label, alias=alias, queue=queue, state=state)
