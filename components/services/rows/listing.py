"""
Which rows a list shows, of all buckets, without reading them all: what is due first, what fails, what has a name.

What is due first is merged from the heads of the buckets, which grow alike: so little more is read than is shown.
What has a name, or fails, is found by scanning, all buckets side by side; a search looks at so many, and then says
that it is cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from redis import Redis

from components.kit.buckets import BUCKETS
from components.kit.errors import redis_errors
from components.kit.stored import number_of, text_of
from components.services.rows import keys
from components.services.rows.controls import escaped
from components.services.rows.core import member, name_and_key
from components.services.rows.records import Listed

REACH = 10_000  # rows that lists show: 60 ms
_FEW = 2_000  # rows of a name that are looked for among all, and failing ones that are listed
_AT_ONCE = 500  # rows of a bucket that one command looks at, below a tenth of a millisecond
_ROUNDS = 12  # of such commands, to all buckets: some 200,000 rows, 0.2 s


def due_first(client: Redis, first: int) -> list[str]:
    """The members that are due first, at most REACH."""
    first = min(first, REACH)
    size = 16 + 3 * first // (2 * len(BUCKETS))
    while True:
        heads = _heads(client, size)
        # What a bucket has beyond its head is due then or later, and may belong between what others have.
        known = min((head[-1][1] for head in heads if len(head) == size), default=math.inf)
        found = sorted(
            (due, each) for head in heads for each, due in head if due < known or known == math.inf
        )
        if len(found) >= first or known == math.inf:
            return [text_of(each) for _due, each in found[:first]]
        size *= 2


def _heads(client: Redis, size: int) -> list[list[tuple[bytes, float]]]:
    return ask(client, lambda pipe, tag: pipe.zrange(keys.rows_schedule(tag), 0, size - 1, withscores=True))


def of_name(client: Redis, name: str, count: int) -> Listed:
    """Those of *name*, of which there are about *count*, those first that are due first."""
    if count > _FEW:
        found = [each for each in due_first(client, REACH) if name_and_key(each)[0] == name]
        return Listed(found, len(found) < count)
    pattern = member(escaped(name), "*")
    pairs, is_cut = _scan(
        client,
        lambda pipe, tag, cursor: pipe.zscan(keys.rows_schedule(tag), cursor, pattern, _AT_ONCE),
        REACH,
    )
    return Listed(
        [text_of(each) for each, _due in sorted(pairs.items(), key=lambda pair: pair[::-1])], is_cut
    )


def failing(client: Redis, name: str = "") -> Listed:
    """Those that could not be loaded, of *name* or of all, those first that were tried last."""
    pattern = member(escaped(name), "*") if name else None
    pairs, is_cut = _scan(
        client, lambda pipe, tag, cursor: pipe.hscan(keys.rows_failures(tag), cursor, pattern, _AT_ONCE), _FEW
    )
    latest_first = sorted(pairs.items(), key=lambda pair: (-_tried_at(pair[1]), pair[0]))
    return Listed([text_of(each) for each, _failure in latest_first], is_cut)


def _tried_at(failure: bytes) -> int:
    words = failure.split(b" ", 2)
    return number_of(words[1]) if len(words) > 1 else 0


def _scan(client: Redis, add: Callable[[Any, str, int], object], most: int) -> tuple[dict[bytes, Any], bool]:
    """What is found in all buckets, about *most*; whether that was not all."""
    found: dict[bytes, Any] = {}
    cursors: dict[str, int] = dict.fromkeys(BUCKETS, 0)
    for _ in range(_ROUNDS):
        asked = dict(cursors)
        with redis_errors(), client.pipeline(transaction=False) as pipe:
            for tag, cursor in asked.items():
                add(pipe, tag, cursor)
            answers = pipe.execute()
        for tag, (cursor, some) in zip(asked, answers, strict=True):
            found.update(some)
            cursors[tag] = int(cursor)
        cursors = {tag: cursor for tag, cursor in cursors.items() if cursor}
        if not cursors or len(found) >= most:
            break
    return found, bool(cursors)


def ask(client: Redis, add: Callable[[Any, str], object]) -> list[Any]:
    """The answers of all buckets to the commands that *add* puts into a pipeline for each."""
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        for tag in BUCKETS:
            add(pipe, tag)
        return list(pipe.execute())
