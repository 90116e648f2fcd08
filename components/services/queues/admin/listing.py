"""
The queues of an alias: totals of all, and a page of those whose name contains what was searched for; and its workers.

The sizes of all queues are read, since totals and order depend on them; only a page of them is shown.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import Paging, searched
from components.formatting import grouped
from components.services.queues import QueueStats, State, TaskInfo, TaskQueue, WorkerInfo
from components.services.queues.admin.lookups import STATES, WORDS
from components.services.queues.facts import unserved

_MOST_BUSY, _MOST_RUNNING = 10, 200  # queues whose tasks are shown beside their workers, and tasks of each
_DOWN, _UP = " \N{BLACK DOWN-POINTING SMALL TRIANGLE}", " \N{BLACK UP-POINTING SMALL TRIANGLE}"
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class _Column:
    """A column by which the list can be sorted. Numbers have their largest first when they are first sorted by."""

    key: str
    name: Promise
    of: Callable[[QueueStats], Any]
    is_number: bool = True

    def head(self, request: HttpRequest, sort: str) -> str:
        """Return the head of the column: a link that sorts by it, or turns the order round."""
        texts = searched(request)
        descends = sort == self.key if sort.removeprefix("-") == self.key else self.is_number
        link = urlencode(
            {**({"q": texts[0]} if texts else {}), "sort": f"{'-' if descends else ''}{self.key}"}
        )
        mark, said = "", ""
        if sort.removeprefix("-") == self.key:
            is_down = sort.startswith("-")
            mark = _DOWN if is_down else _UP
            said = gettext("largest first") if is_down else gettext("smallest first")
        hidden = format_html(' <span class="visually-hidden">({})</span>', said) if said else ""
        return format_html('<a href="?{}">{}{}</a>{}', link, self.name, mark, hidden)


COLUMNS = [
    _Column("name", _("Queue"), lambda queue: queue.name, is_number=False),
    _Column("ready", _("Ready"), lambda queue: queue.ready),
    _Column("oldest", _("Oldest waits"), lambda queue: queue.oldest_age or 0.0),
    _Column("delayed", _("Delayed"), lambda queue: queue.delayed),
    _Column("due", _("Next due"), lambda queue: queue.next_due_at or _NEVER, is_number=False),
    _Column("running", _("Running"), lambda queue: queue.running),
    _Column("dead", _("Dead"), lambda queue: queue.dead),
    _Column("successful", _("Successful, kept"), lambda queue: queue.successful),
]


def _rows(
    alias: str, queues: Sequence[QueueStats], url_of: Callable[[str], str]
) -> list[tuple[QueueStats, dict[State, SafeString]]]:
    """Return *queues*, each with the cells of its states: numbers that are links. A template for each is slower."""
    tasks, failures = url_of("tasks"), url_of("failures")
    words = {state: str(word) for state, word in WORDS.items()}
    said = gettext("%(count)s %(word)s in %(queue)s")

    def cell(queue: QueueStats, state: State) -> SafeString:
        count = getattr(queue, state)
        place = {"alias": alias, "queue": queue.name}
        is_bad = state == "dead" and count
        url = (
            f"{failures}?{urlencode(place)}" if is_bad else f"{tasks}?{urlencode({**place, 'state': state})}"
        )
        kind = "bad" if is_bad else "" if count else "none"
        text = grouped(count)
        label = said % {"count": text, "word": words[state], "queue": queue.name}
        return format_html(
            '<td class="number"><a href="{}" class="{}" aria-label="{}">{}</a></td>', url, kind, label, text
        )

    return [(queue, {state: cell(queue, state) for state in STATES}) for queue in queues]


def overview_of(
    alias: str, request: HttpRequest, url_of: Callable[[str], str], *, is_alone: bool
) -> dict[str, Any]:
    """Return one alias of TASKS as the first page shows it."""
    service = TaskQueue(alias)
    queues, workers = service.overview()
    wanted, sort = [text.casefold() for text in searched(request)], request.GET.get("sort", "name")
    found = [queue for queue in queues if not wanted or any(text in queue.name.casefold() for text in wanted)]
    column = next((each for each in COLUMNS if each.key == sort.removeprefix("-")), COLUMNS[0])
    found.sort(key=column.of, reverse=sort.startswith("-"))
    is_asked = is_alone or request.GET.get("alias") == alias
    paging = Paging.of(request, total=len(found)) if is_asked else Paging(len(found))
    return {
        "alias": alias,
        "totals": {state: sum(getattr(queue, state) for queue in queues) for state in STATES},
        "number": len(queues),
        "rows": _rows(alias, found[paging.offset : paging.last], url_of),
        "paging": paging,
        "heads": [each for at in COLUMNS for each in (at.head(request, sort), "#" * (at.key in STATES))],
        # Queues in which tasks wait that no living worker takes.
        "unserved": {queue.name for queue in unserved(queues, workers)},
        # How many successful tasks of a queue are kept, and for how many seconds.
        "kept": service.options.successful_limit,
        "kept_for": service.options.result_ttl,
    }


def workers_of(service: TaskQueue, text: str) -> list[tuple[WorkerInfo, list[TaskInfo]]]:
    """Return the workers with *text* in their ids, lost ones first; each with its tasks, of the busiest queues."""
    queues, workers = service.overview()
    busy = sorted((queue for queue in queues if queue.running), key=lambda queue: -queue.running)
    running = defaultdict[str, list[TaskInfo]](list)
    for queue in busy[:_MOST_BUSY]:
        for info in service.tasks(queue.name, "running", limit=_MOST_RUNNING):
            running[info.worker_ids[-1] if info.worker_ids else ""].append(info)
    workers.sort(key=lambda worker: (worker.alive, worker.host, worker.started_at, worker.id))
    return [(worker, running[worker.id]) for worker in workers if text in worker.id]
