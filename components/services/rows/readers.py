"""
RowReader: what is on the schedule, by page, for the control room; and how single rows stand.

How many rows there are of each name, and fail, is counted by the scripts that change it, bucket by bucket: to scan
the schedules for it would cost half a second with 100,000 rows, at each refresh of a page. Nothing changes, and of
JSON only the head is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from redis import Redis

from components.kit.buckets import bucket
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.stored import number_of, text_of
from components.services.rows import keys
from components.services.rows.core import check_cache_name, check_key, member, name_and_key
from components.services.rows.listing import REACH, ask, due_first, failing, of_name
from components.services.rows.records import CacheInfo, Failure, Listed, RowInfo, instant

__all__ = ["REACH", "RowReader"]

_HEAD = re.compile(rb'\[(\d+),(\d+),"[^"]*",(null\])?')
_HEAD_SIZE = 99  # bytes that it has at most, and more
_SIX = 6  # commands for each row
_LATEST = 100  # rows of each bucket among which the latest of each name is looked for


class RowReader:
    """What is on the schedule. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """How many rows there are."""
        return sum(ask(get_client(), lambda pipe, tag: pipe.zcard(keys.rows_schedule(tag))))

    def failing(self) -> int:
        """How many rows could not be loaded when that was last tried."""
        return sum(ask(get_client(), lambda pipe, tag: pipe.hlen(keys.rows_failures(tag))))

    def lateness(self) -> float:
        """Seconds for which the row has been due that has been for longest; 0 if none is."""
        client = get_client()
        heads = ask(client, lambda pipe, tag: pipe.zrange(keys.rows_schedule(tag), 0, 0, withscores=True))
        now = _now(client)
        return max((_late(now, head[0][1]) for head in heads if head), default=0.0)

    def names(self) -> list[CacheInfo]:
        """How the rows of each name stand, by the alphabet. Two round trips to each node."""
        client = get_client()
        answers = ask(client, _add_names)
        now = _now(client)
        counts, late, most = Counter[str](), dict[str, float](), dict[str, float]()
        for tally, head in zip(answers[::2], answers[1::2], strict=True):
            here = {text_of(what): number_of(number) for what, number in tally.items()}
            counts.update(here)
            dues = {name_and_key(text_of(each))[0]: due for each, due in reversed(head)}
            for name in here:
                if name in dues:
                    late[name] = max(late.get(name, 0.0), _late(now, dues[name]))
                elif len(head) == _LATEST:
                    most[name] = max(most.get(name, 0.0), _late(now, head[-1][1]))
        return [
            CacheInfo(
                name,
                counts[name],
                counts[f"{name}:failing"],
                max(late.get(name, 0.0), most.get(name, 0.0)),
                most.get(name, 0.0) > late.get(name, 0.0),
            )
            for name in sorted(counts)
            if ":" not in name
        ]

    def page(self, *, offset: int = 0, limit: int = 50) -> list[RowInfo]:
        """Some of the REACH rows that are due first, in that order. About three round trips to each node."""
        client = get_client()
        return look(client, due_first(client, offset + limit)[offset:])

    def of(self, name: str) -> Listed:
        """
        The rows of *name* that are on the schedule, those first that are due first; for look().

        Of a name of many, those among the REACH rows that are due first of all. Raises InvalidName.
        """
        client, checked = get_client(), check_cache_name(name)
        counts = ask(client, lambda pipe, tag: pipe.hget(keys.rows_counts(tag), checked))
        return of_name(client, checked, sum(map(number_of, counts)))

    def failures(self, name: str = "") -> Listed:
        """
        The rows that could not be loaded when that was last tried, of *name* or of all, those first that were tried
        last; for look(). Raises InvalidName.
        """
        return failing(get_client(), check_cache_name(name) if name else "")

    def look(self, members: Sequence[str]) -> list[RowInfo]:
        """How these stand, in two round trips to each node. Those that are gone meanwhile are on no schedule."""
        return look(get_client(), members)

    def find(self, name: str, key: str | int) -> RowInfo | None:
        """How the row stands; None if it is neither on the schedule nor stored. Raises InvalidName."""
        [info] = look(get_client(), [member(check_cache_name(name), check_key(key))])
        return None if info.delay is None and info.loaded_at is None else info


def _add_names(pipe: Any, tag: str) -> None:
    pipe.hgetall(keys.rows_counts(tag))
    pipe.zrange(keys.rows_schedule(tag), 0, _LATEST - 1, withscores=True)


def _late(now: int, due: float) -> float:
    """Return for how many seconds it has been due: no longer than since 1970, whatever is stored."""
    return max(0.0, min(now, now - due)) / 1e6


def look(client: Redis, members: Sequence[str]) -> list[RowInfo]:
    """How these stand now, in two round trips to each node."""
    if not members:
        return []
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        for each in members:
            _add(pipe, each)
        answers = iter(pipe.execute())
    now = _now(client)
    return [
        _read(each, now, *six) for each, six in zip(members, zip(*[answers] * _SIX, strict=True), strict=True)
    ]


def _add(pipe: Any, each: str) -> None:
    tag = bucket(each)
    pipe.zscore(keys.rows_schedule(tag), each)
    pipe.hget(keys.rows_delays(tag), each)
    pipe.hget(keys.rows_failures(tag), each)
    pipe.strlen(keys.row(tag, each))
    pipe.getrange(keys.row(tag, each), 0, _HEAD_SIZE)
    pipe.exists(keys.row_claim(tag, each))


def _read(
    each: str,
    now: int,
    due: float | None,
    delay: bytes | None,
    failure: bytes | None,
    size: int,
    head: bytes,
    is_claimed: int,
) -> RowInfo:
    name, key = name_and_key(each)
    stored = _HEAD.match(head)
    return RowInfo(
        name=name,
        key=key,
        delay=number_of(delay) / 1e6 if delay else None,
        due_at=None if due is None else instant(due),
        late=0.0 if due is None or is_claimed else _late(now, due),
        loaded_at=instant(int(stored[1])) if stored else None,
        age=max(0, now - int(stored[1])) / 1e6 if stored else None,
        size=size,
        is_deleted=bool(stored and stored[3]),
        failure=_failure(failure) if failure else None,
    )


def _failure(words: bytes) -> Failure:
    count, _, rest = text_of(words).partition(" ")
    at, _, error = rest.partition(" ")
    return Failure(number_of(count), instant(number_of(at)), error)


def _now(client: Redis) -> int:
    with redis_errors():
        seconds, microseconds = client.time()
    return int(seconds) * 1_000_000 + int(microseconds)
