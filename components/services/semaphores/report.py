"""
The report of semaphores: how many there are, which of them somebody waits for, their figures, and finding those used
within a month by name.
"""

from functools import partial

from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.formatting import duration, grouped, legible
from components.kit.keyspace import BUCKETS
from components.kit.readings import Ask, Event
from components.kit.scripts import Script
from components.reports import (
    MOST_WAITED_FOR,
    CardReading,
    Contended,
    Line,
    Link,
    Past,
    card_of_waits,
    finder_of,
)
from components.services.semaphores.keys import SemaphoreKeys

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
find = finder_of("semaphore", "semaphore", lambda: [SemaphoreKeys.of_bucket(tag).names for tag in BUCKETS])
CONTENDED = Script("semaphores/contended")


def card() -> CardReading:
    """Count the semaphores, and find those that somebody has waited for too long."""
    buckets = map(SemaphoreKeys.of_bucket, BUCKETS)
    return card_of_waits(
        [Ask(keys.names, partial(CONTENDED.put, keys=keys, most=MOST_WAITED_FOR)) for keys in buckets],
        lambda number: ngettext("semaphore", "semaphores", number),
        gettext("Waiting for a permit"),
        _line,
    )


def _line(each: Contended) -> Line:
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
