"""
The report of semaphores: how many there are, which of them somebody waits for, their figures, and finding those used
within a month by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.kit.figures import Ask, Event
from components.kit.keyspace import BUCKETS
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.reports import Card, CardReading, Line, Link, Past, finder_of, lines_about
from components.services.semaphores.keys import SemaphoreKeys, index
from components.templatetags.control_room import duration, grouped, legible

PAST = Past(
    "semaphores:acquired",
    ngettext_lazy(
        "%(count)s permit was granted in the last %(span)s",
        "%(count)s permits were granted in the last %(span)s",
        "number",
    ),
)
EVENTS = (
    Event("semaphores:acquired", "components_permits_acquired", "Permits that were acquired."),
    Event("semaphores:waited", "components_permits_waited", "Calls that had to wait for a permit."),
    Event(
        "semaphores:lost", "components_permits_lost", "Permits whose time ended before they were released."
    ),
    Event(
        "semaphores:wait",
        "components_permit_wait_seconds",
        "How long calls that waited and got a permit did.",
        is_histogram=True,
    ),
)
find = finder_of("semaphore", "semaphore", lambda: [*map(index, BUCKETS)])
CONTENDED = Script("semaphores/contended")

#: The semaphores of a bucket that are looked at, those that were used last.
_MOST = 32
#: Seconds that one may wait for a permit before somebody should look at it.
_PATIENCE = 10.0


class _Contended(NamedTuple):
    name: str
    waiting: int
    #: Seconds that the first has waited.
    waited: float


def card() -> CardReading:
    """Count the semaphores, and find those that somebody has waited for too long."""
    answers = yield [_ask(tag) for tag in BUCKETS]
    number = sum(int(answer[0]) for answer in answers)
    contended = [each for answer in answers for each in _contended(answer)]
    stuck = sorted((each for each in contended if each.waited >= _PATIENCE), key=lambda each: -each.waited)
    return Card(
        number,
        ngettext("semaphore", "semaphores", number),
        [
            (gettext("Waiting for a permit"), grouped(sum(each.waiting for each in contended))),
            (gettext("Longest wait"), duration(max((each.waited for each in contended), default=None))),
        ],
        lines_about(stuck, _line, _MORE),
    )


def _ask(tag: str) -> Ask:
    keys = SemaphoreKeys.of_bucket(tag)
    return Ask(keys.names, partial(CONTENDED.put, keys=keys, most=_MOST))


def _contended(answer: Sequence[Any]) -> list[_Contended]:
    _number, *found = answer
    return [
        _Contended(text_of(name), waiting, int(waited) / 1e6)
        for name, waiting, waited in zip(*[iter(found)] * 3, strict=True)
    ]


def _line(each: _Contended) -> Line:
    text = ngettext(
        "%(count)s caller waits for a permit of the semaphore %(semaphore)s, for %(age)s.",
        "%(count)s callers wait for a permit of the semaphore %(semaphore)s, the first for %(age)s.",
        each.waiting,
    )
    about = {
        "count": grouped(each.waiting),
        "semaphore": legible(each.name),
        "age": duration(each.waited),
    }
    page = Link("semaphore", gettext("Holders and waiters"), semaphore=each.name)
    mend = Link("limit", gettext("Change the limit"), semaphore=each.name)
    return Line("W125", text % about, page, mend)


_MORE = ngettext_lazy(
    "%(count)s more semaphore keeps callers waiting.",
    "%(count)s more semaphores keep callers waiting.",
    "number",
)
