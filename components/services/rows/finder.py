"""The finder of cached rows: their models by name, and a row by its whole name, "items:42"."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.utils.translation import gettext

from components.kit.cards import Link
from components.kit.figures import Ask
from components.kit.finders import FinderReading, Found, best
from components.kit.keyspace import BUCKETS, bucket
from components.kit.stored import text_of
from components.services.rows.keys import RowKeys
from components.templatetags.control_room import legible


def find(text: str) -> FinderReading:
    """Find models with rows on the schedule, and the row *text* if it is on it."""
    exact = RowKeys(bucket(text)).schedule
    due, *counts = yield [
        Ask(exact, partial(_add_due, exact, text)),
        *(Ask(keys.counts, partial(_add_counts, keys.counts)) for keys in map(RowKeys, BUCKETS)),
    ]
    names = (text_of(name) for stored in counts for name in stored if b":" not in name)
    kind = gettext("Cached model")
    found = [Found(Link("model", legible(name), model=name), kind) for name in best(names, text)]
    return [Found(Link("row", legible(text), row=text)), *found] if due is not None else found


def _add_due(key: str, member: str, pipe: Any) -> None:
    pipe.zscore(key, member)


def _add_counts(key: str, pipe: Any) -> None:
    pipe.hgetall(key)
