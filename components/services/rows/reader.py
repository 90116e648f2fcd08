"""
RowReader: the list of scheduled rows, in pages, and the state of single rows, for the control room.

The scripts that change the schedule count the rows of each name, and the failing ones, bucket by bucket. Scanning the
schedules instead would take half a second with 100,000 rows, at each refresh of a page.

The rows that are due first are merged from the heads of the buckets, which grow evenly, so little more is read than
is shown. Rows of a name, and failing rows, are found by scanning all buckets in parallel. Such a search ends after a
limited number of commands, and then marks its list as incomplete. Reading changes nothing, and only the beginning of
the JSON is read.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from redis import Redis

from components.kit.client import get_client
from components.kit.decoding import instant_of, number_of, text_of
from components.kit.errors import redis_errors
from components.kit.keyspace import BUCKETS, bucket
from components.kit.leases import server_clock
from components.kit.lua_headers import record
from components.kit.scripts import pipelined
from components.kit.sync_async import at_once
from components.services.rows.keys import RowKeys
from components.services.rows.members import check_cache_name, check_key, member, name_and_key, pattern_of

REACH = 6_000  # rows that lists show: 40 ms
_FEW = 2_000  # rows of a name, or failing rows, that a search lists
_AT_ONCE = 500  # rows of a bucket that one command reads, in less than a tenth of a millisecond
_ROUNDS = 12  # such commands to each bucket: some 200,000 rows, 0.2 s
_LATEST = 100  # rows of each bucket that are searched for the most overdue row of each name
_HEAD = re.compile(rb'\[(\d+),(\d+),"[^"]*",(null\])?')
_HEAD_SIZE = 99  # bytes, more than the beginning of a row ever has
_SIX = 6  # number of commands for each row


@dataclass(frozen=True)
class Failure:
    """The number of times that the loading of a row has failed since it last succeeded."""

    count: int
    last_at: datetime
    error: str


@dataclass(frozen=True)
class RowInfo:
    """The state of a row."""

    name: str
    key: str
    #: Seconds between two loads, and when the next is due; None if the row is not on the schedule.
    delay: float | None
    due_at: datetime | None
    #: Seconds for which it has been due; 0 if it is not due yet, and while it is being loaded.
    late: float
    #: The facts about the stored row; None if nothing is stored.
    loaded_at: datetime | None
    age: float | None
    #: Bytes of JSON; 0 if nothing is stored.
    size: int
    is_deleted: bool
    failure: Failure | None


@dataclass(frozen=True)
class CacheInfo:
    """The state of the rows of one name that are on the schedule."""

    name: str
    count: int
    #: The number of rows that could not be loaded when that was last tried.
    failing: int
    #: Seconds for which the most overdue row has been due; 0 if none is due.
    late: float
    #: Whether *late* is only an upper bound, because too many rows of other names have been due for longer.
    is_at_most: bool


@dataclass(frozen=True)
class Listed:
    """Members in the order of a list."""

    members: list[str]
    #: Whether the list is incomplete.
    is_cut: bool


class RowReader:
    """The rows on the schedule. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """Return how many rows are on the schedule."""
        return sum(_ask(get_client(), lambda pipe, keys: pipe.zcard(keys.schedule)))

    def failing(self) -> int:
        """Return how many rows failed at their last load."""
        return sum(_ask(get_client(), lambda pipe, keys: pipe.hlen(keys.failures)))

    def lateness(self) -> float:
        """Return the seconds for which the most overdue row has been due; 0 if none is due."""
        client = get_client()
        heads = _heads(client, 1)
        now = server_clock(client)
        return max((_late(now, head[0][1]) for head in heads if head), default=0.0)

    def names(self) -> list[CacheInfo]:
        """Return the state of the rows of each name, in alphabetical order, in two round trips to each node."""
        client = get_client()
        answers = _ask(client, _add_names)
        now = server_clock(client)
        counts, late = Counter[str](), defaultdict[str, list[tuple[float, bool]]](list)
        for tally, head in zip(answers[::2], answers[1::2], strict=True):
            here = {text_of(what): number_of(number) for what, number in tally.items()}
            counts.update(here)
            dues = {name_and_key(text_of(each))[0]: due for each, due in reversed(head)}
            last = head[-1][1] if len(head) == _LATEST else None
            for name in here:
                if (due := dues.get(name, last)) is not None:
                    late[name].append((_late(now, due), name in dues))
        found = []
        for name in (each for each in sorted(counts) if ":" not in each):
            longest, is_known = max(late[name], default=(0.0, True))
            found.append(CacheInfo(name, counts[name], counts[f"{name}:failing"], longest, not is_known))
        return found

    def page(self, *, offset: int = 0, limit: int = 50) -> list[RowInfo]:
        """
        Return some of the REACH rows that are due first, in that order, in about three round trips to each node.
        """
        return self.look(_due_first(get_client(), offset + limit)[offset:])

    def of(self, name: str) -> Listed:
        """
        Return the members of *name* on the schedule, the earliest due first; for look(). If there are many, the list
        has only those among the REACH rows of any name that are due first. Raises InvalidName.
        """
        client, checked = get_client(), check_cache_name(name)
        count = sum(map(number_of, _ask(client, lambda pipe, keys: pipe.hget(keys.counts, checked))))
        if count > _FEW:
            among = [each for each in _due_first(client, REACH) if each.startswith(member(checked, ""))]
            return Listed(among, len(among) < count)
        pattern = pattern_of(checked)
        found, is_cut = _scan(
            client, lambda pipe, keys, cursor: pipe.zscan(keys.schedule, cursor, pattern, _AT_ONCE), REACH
        )
        due_first = sorted(found.items(), key=lambda pair: pair[::-1])
        return Listed([text_of(each) for each, _due in due_first], is_cut)

    def failures(self, name: str = "") -> Listed:
        """
        Return the members that failed at their last load, of *name* or of all names; for look(). The one that was
        tried last comes first. Raises InvalidName.
        """
        pattern = pattern_of(check_cache_name(name)) if name else None
        found, is_cut = _scan(
            get_client(),
            lambda pipe, keys, cursor: pipe.hscan(keys.failures, cursor, pattern, _AT_ONCE),
            _FEW,
        )
        failures = sorted((each, _failure(stored)) for each, stored in found.items())
        failures.sort(key=lambda pair: pair[1].last_at, reverse=True)
        return Listed([text_of(each) for each, _ in failures], is_cut)

    def look(self, members: Sequence[str]) -> list[RowInfo]:
        """
        Return the state of these members, in two round trips to each node. One removed meanwhile has no schedule.
        """
        if not members:
            return []
        client = get_client()
        answers = iter(at_once(pipelined(client, members, _add_row)))
        now = server_clock(client)
        rows = zip(members, zip(*[answers] * _SIX, strict=True), strict=True)
        return [_read_row(each, now, six) for each, six in rows]

    def find(self, name: str, key: str | int) -> RowInfo | None:
        """Return the state of the row; None if it is neither on the schedule nor stored. Raises InvalidName."""
        [info] = self.look([member(check_cache_name(name), check_key(key))])
        return None if info.delay is None and info.loaded_at is None else info


def _add_names(pipe: Any, keys: RowKeys) -> None:
    pipe.hgetall(keys.counts)
    pipe.zrange(keys.schedule, 0, _LATEST - 1, withscores=True)


def _add_row(pipe: Any, each: str) -> None:
    keys = RowKeys(bucket(each))
    pipe.zscore(keys.schedule, each)
    pipe.hget(keys.delays, each)
    pipe.hget(keys.failures, each)
    pipe.strlen(keys.row_of(each))
    pipe.getrange(keys.row_of(each), 0, _HEAD_SIZE)
    pipe.exists(keys.claim_of(each))


def _read_row(each: str, now: int, answers: tuple[Any, ...]) -> RowInfo:
    due, delay, failure, size, head, is_claimed = answers
    name, key = name_and_key(each)
    stored = _HEAD.match(head)
    return RowInfo(
        name=name,
        key=key,
        delay=number_of(delay) / 1e6 if delay else None,
        due_at=None if due is None else instant_of(due / 1_000),
        late=0.0 if due is None or is_claimed else _late(now, due),
        loaded_at=instant_of(int(stored[1]) / 1_000) if stored else None,
        age=max(0, now - int(stored[1])) / 1e6 if stored else None,
        size=size,
        is_deleted=bool(stored and stored[3]),
        failure=_failure(failure) if failure else None,
    )


def _failure(stored: bytes) -> Failure:
    found = record("rows", "failure").read(stored)
    _count, _tried_at, error = [*text_of(stored).split(" ", 2), "", ""][:3]
    return Failure(number_of(found["count"]), instant_of(number_of(found["tried_at"]) / 1_000), error)


def _late(now: int, due: float) -> float:
    """Return for how many seconds the row has been due, at most since 1970, whatever is stored."""
    return max(0.0, min(now, now - due)) / 1e6


def _due_first(client: Redis, first: int) -> list[str]:
    first = min(first, REACH)
    size = 16 + 3 * first // (2 * len(BUCKETS))
    while True:
        heads = _heads(client, size)
        # The rows of a bucket beyond its head are due then or later, and may belong between those of other buckets.
        known = min((head[-1][1] for head in heads if len(head) == size), default=math.inf)
        found = sorted(
            (due, each) for head in heads for each, due in head if due < known or known == math.inf
        )
        if len(found) >= first or known == math.inf:
            return [text_of(each) for _due, each in found[:first]]
        size *= 2


def _heads(client: Redis, size: int) -> list[list[tuple[bytes, float]]]:
    return _ask(client, lambda pipe, keys: pipe.zrange(keys.schedule, 0, size - 1, withscores=True))


def _scan(
    client: Redis, add: Callable[[Any, RowKeys, int], object], most: int
) -> tuple[dict[bytes, Any], bool]:
    """Return about *most* pairs that a scan finds in all buckets, and whether there may be more."""
    found: dict[bytes, Any] = {}
    cursors: dict[str, int] = dict.fromkeys(BUCKETS, 0)
    for _ in range(_ROUNDS):
        asked = dict(cursors)
        with redis_errors(), client.pipeline(transaction=False) as pipe:
            for tag, cursor in asked.items():
                add(pipe, RowKeys(tag), cursor)
            answers = pipe.execute()
        for tag, (cursor, some) in zip(asked, answers, strict=True):
            found.update(some)
            cursors[tag] = int(cursor)
        cursors = {tag: cursor for tag, cursor in cursors.items() if cursor}
        if not cursors or len(found) >= most:
            break
    return found, bool(cursors)


def _ask(client: Redis, add: Callable[[Any, RowKeys], object]) -> list[Any]:
    """Return the answers of all buckets to the commands that *add* puts into a pipeline for each."""
    return at_once(pipelined(client, [*map(RowKeys, BUCKETS)], add))
