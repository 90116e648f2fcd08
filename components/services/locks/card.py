"""The card of locks: how many are held, and which of them somebody waits for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from django.utils.translation import gettext, ngettext, ngettext_lazy

from components.kit.cards import MOST_LINES, Badge, Card, CardReading, Line, Link, Past, and_more, beyond
from components.kit.figures import Ask
from components.kit.keyspace import BUCKETS
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.templatetags.control_room import duration, grouped, legible

PAST = Past(
    "locks:acquired",
    ngettext_lazy(
        "%(count)s lock was acquired in the last %(span)s",
        "%(count)s locks were acquired in the last %(span)s",
        "number",
    ),
)
CONTENDED = Script("locks/contended")

#: The locks of a bucket that are looked at: one that somebody waits for is found, unless a thousand are held.
_MOST = 32
#: Seconds that one may wait for a lock before somebody should look at it.
_PATIENCE = 10.0


class _Contended(NamedTuple):
    name: str
    token: str
    waiting: int
    #: Seconds that the first has waited.
    waited: float


def card() -> CardReading:
    """Count the locks that are held, and find those that somebody has waited for too long."""
    answers = yield [_ask(tag) for tag in BUCKETS]
    held = sum(int(answer[0]) for answer in answers)
    contended = [each for answer in answers for each in _contended(answer)]
    stuck = sorted((each for each in contended if each.waited >= _PATIENCE), key=lambda each: -each.waited)
    badge = ngettext("%(count)s lock keeps others waiting", "%(count)s locks keep others waiting", len(stuck))
    return Card(
        held,
        ngettext("lock is held", "locks are held", held),
        [
            (gettext("Waiting for a lock"), grouped(sum(each.waiting for each in contended))),
            (gettext("Longest wait"), duration(max((each.waited for each in contended), default=None))),
        ],
        _lines(stuck),
        [Badge(badge % {"count": grouped(len(stuck))}, is_serious=False)] if stuck else [],
    )


def _ask(tag: str) -> Ask:
    keys = LockKeys.of_bucket(tag)
    return Ask(keys.held, partial(CONTENDED.put, keys=keys, most=_MOST))


def _contended(answer: Sequence[Any]) -> list[_Contended]:
    _held, *found = answer
    return [
        _Contended(text_of(name), token.decode(errors="surrogateescape"), waiting, int(waited) / 1e6)
        for name, token, waiting, waited in zip(*[iter(found)] * 4, strict=True)
    ]


def _lines(stuck: Sequence[_Contended]) -> list[Line]:
    lines = []
    for each in stuck[:MOST_LINES]:
        text = ngettext(
            "%(count)s caller waits for the lock %(lock)s, for %(age)s.",
            "%(count)s callers wait for the lock %(lock)s, the first for %(age)s.",
            each.waiting,
        )
        said = text % {
            "count": grouped(each.waiting),
            "lock": legible(each.name),
            "age": duration(each.waited),
        }
        key, holder = key_of(each.name), legible(each.token)
        lines.append(
            Line(
                said,
                Link("lock", gettext("Holder and waiters"), key=key),
                Link("release", gettext("Release by force"), key=key, holder=holder) if holder else None,
                is_serious=False,
            )
        )
    more = ngettext(
        "%(count)s more lock keeps callers waiting.",
        "%(count)s more locks keep callers waiting.",
        beyond(stuck),
    )
    return and_more(lines, stuck, Line(more % {"count": grouped(beyond(stuck))}, is_serious=False))
