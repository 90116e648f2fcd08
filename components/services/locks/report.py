"""
The report of locks: how many are held, which of them somebody waits for, their figures, and finding those that are
held by name or key, and a free one by its whole name.
"""

from functools import partial
from time import time

from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.exceptions import InvalidName
from components.formatting import duration, grouped, legible
from components.kit.client import get_client
from components.kit.keyspace import BUCKETS
from components.kit.readings import Ask, Event, Family, Gauges
from components.kit.scripts import Script
from components.reports import (
    MOST_WAITED_FOR,
    CardReading,
    Contended,
    FinderReading,
    Found,
    Line,
    Link,
    Past,
    ask_names,
    best_of,
    card_of_waits,
)
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of

PAST = Past(
    "locks:acquired",
    ngettext_lazy(
        "%(count)s lock was acquired in the last %(span)s",
        "%(count)s locks were acquired in the last %(span)s",
        "number",
    ),
)
EVENTS = (
    Event("locks:acquired", "components_locks_acquired", "Locks that were acquired."),
    Event("locks:waited", "components_locks_waited", "Calls that had to wait for a lock."),
    Event("locks:lost", "components_locks_lost", "Locks whose time ended before they were released."),
    Event("locks:wait", "components_lock_wait_seconds", "How long calls that waited did.", is_histogram=True),
)
CONTENDED = Script("locks/contended")


def card() -> CardReading:
    """Count the locks that are held, and find those that somebody has waited for too long."""
    buckets = map(LockKeys.of_bucket, BUCKETS)
    return card_of_waits(
        [Ask(keys.held, partial(CONTENDED.put, keys=keys, most=MOST_WAITED_FOR)) for keys in buckets],
        lambda held: ngettext("lock is held", "locks are held", held),
        gettext("Waiting for a lock"),
        _line,
    )


def _line(each: Contended) -> Line:
    text = ngettext(
        "%(count)s caller waits for the lock %(lock)s, for %(age)s.",
        "%(count)s callers wait for the lock %(lock)s, the first for %(age)s.",
        each.waiting,
    )
    about = {"count": grouped(each.waiting), "lock": legible(each.name), "age": duration(each.waited)}
    key, holder = key_of(each.name), legible(each.token)
    page = Link("lock", gettext("Holder and waiters"), key=key)
    mend = Link("release", gettext("Release by force"), key=key, holder=holder) if holder else None
    return Line("W124", text % about, page, mend)


def gauges() -> Gauges:
    """Count the held locks; by this machine's clock, since asking for the server's would be another round trip."""
    held = Family("components_locks_held", "Locks that are held, except those at keys of the project's own.")
    now = f"({int(time() * 1_000)}"
    answers = yield [Ask.of("zcount", LockKeys.of_bucket(tag).held, now, "+inf") for tag in BUCKETS]
    held.add(sum(answers))
    return [held]


def find(text: str) -> FinderReading:
    """Find locks of lock(), and the lock at the key *text*. What is stored about a free one lasts for a day."""
    buckets = [LockKeys.of_bucket(tag) for tag in BUCKETS]
    answers = yield [
        *ask_names([keys.held for keys in buckets], text, starts=[keys.lock for keys in buckets]),
        *(ask for keys in _exact(text) for ask in _ask_exact(keys)),
    ]
    names, of_exact = answers[: len(buckets)], answers[len(buckets) :]
    found = {key_of(name): name for name in best_of(names, text)}
    for keys, is_stored, held_until in zip(_exact(text), of_exact[::2], of_exact[1::2], strict=True):
        if is_stored or held_until is not None:
            found.setdefault(keys.lock, text)
    return [Found(Link("lock", legible(name), key=key)) for key, name in found.items()]


def _exact(text: str) -> list[LockKeys]:
    """Return the keys of the lock with the name *text*, and of the lock at the key *text*."""
    try:
        return [LockKeys.named(text), LockKeys.of(text, get_client())]
    except InvalidName:  # no lock can be called that
        return []


def _ask_exact(keys: LockKeys) -> list[Ask]:
    return [Ask.of("exists", keys.state), Ask.of("zscore", keys.held, keys.lock)]
