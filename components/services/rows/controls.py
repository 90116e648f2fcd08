"""
RowControls: changes to scheduled rows by name and key, without knowing their shape.

All rows of a name are found by going through the buckets, a thousand members at a time. Each part is changed before
the next one is read, so other clients get their turn in between, and an interrupted call has changed some rows. A row
that leaves the schedule meanwhile is not changed. Repeating a call has no further effect.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from components.exceptions import InvalidValue
from components.kit.client import AnyRedis, get_client
from components.kit.decoding import text_of
from components.kit.errors import redis_errors
from components.kit.keyspace import BUCKETS, by_call, parts
from components.kit.scripts import Script
from components.kit.sync_async import at_once, both
from components.services.rows.keys import RowKeys
from components.services.rows.members import (
    AT_ONCE,
    LEASE,
    check_cache_name,
    check_delay,
    members_of,
    micro,
    name_and_key,
    pattern_of,
)

REFRESH = Script("rows/refresh")
SCHEDULE = Script("rows/schedule")
UNSCHEDULE = Script("rows/unschedule")

_AT_ONCE = 1_000  # members that one call examines

#: A function that takes a client and members, and returns the members that it changed.
_Act: TypeAlias = Callable[[Any, Sequence[str]], Any]


class Changed(NamedTuple):
    """The changes to all rows of a name."""

    rows: int
    #: The bucket to continue from; 0 if all rows are done.
    rest: int = 0

    @property
    def left(self) -> float:
        """Return the approximate share of all rows that is left."""
        return 1 - self.rest / len(BUCKETS) if self.rest else 0.0


class RowControls:
    """
    The rows called *name*, of any shape. Every method raises RedisUnavailable, and InvalidName for what cannot be a
    key.
    """

    def __init__(self, name: str) -> None:
        self.name = check_cache_name(name)

    async def _refresh(self, client: AnyRedis, *keys: str | int) -> set[str]:
        """
        Make these rows due now, to be loaded by the next free daemon. Until then, readers get the stored rows. A
        running load is stored, and followed by another one. Return the keys of rows that are not on the schedule,
        which no daemon loads.
        """
        members = members_of(self.name, keys)
        return _keys_of_others(members, await _make_due(client, members))

    refresh, arefresh = both(_refresh)

    async def _unschedule(self, client: AnyRedis, *keys: str | int) -> None:
        """Remove these rows from the schedule and the cache. Running loads of them are not stored."""
        await unschedule(client, members_of(self.name, keys))

    unschedule, aunschedule = both(_unschedule)
    remove = unschedule

    def set_delay(self, delay: float, *keys: str | int) -> set[str]:
        """
        Set the delay of the rows that are on the schedule. Return the keys of the others. Raises InvalidValue, also
        for 0: use remove() to remove rows.
        """
        seconds, members = _above_zero(delay), members_of(self.name, keys)
        return _keys_of_others(members, at_once(_set_delay(get_client(), seconds, members)))

    def refresh_all(self, *, start: int = 0, most: int | None = None) -> Changed:
        """
        Make rows on the schedule due now, from the bucket *start* on: about *most* of them, or all without *most*.
        The result says where to continue.
        """
        return self._each(_make_due, start, most)

    def set_delay_of_all(self, delay: float, *, start: int = 0, most: int | None = None) -> Changed:
        """Set the delay of rows on the schedule, as many as refresh_all() makes due. Raises InvalidValue."""
        seconds = _above_zero(delay)
        return self._each(lambda client, members: _set_delay(client, seconds, members), start, most)

    def remove_all(self, *, start: int = 0, most: int | None = None) -> Changed:
        """Remove rows on the schedule, as many. Rows that readers have cached expire by themselves."""
        return self._each(unschedule, start, most)

    def _each(self, act: _Act, start: int, most: int | None) -> Changed:
        client, count, pattern = get_client(), 0, pattern_of(self.name)
        for number in range(max(0, start), len(BUCKETS)):
            if most is not None and count >= most:
                return Changed(count, number)
            with redis_errors():
                found = client.zscan_iter(RowKeys(BUCKETS[number]).schedule, pattern, _AT_ONCE)
                for members in parts((text_of(each) for each, _due in found), _AT_ONCE):
                    count += len(at_once(act(client, members)))
        return Changed(count)


async def schedule(client: AnyRedis, delays: Mapping[str, float], *, only_these: bool = False) -> set[str]:
    """
    Schedule these members with these delays, in seconds; with *only_these*, only those on the schedule. Return the
    members that were on the schedule.
    """
    asked, calls = by_call(delays, AT_ONCE), []
    for tag, some in asked:
        delayed = [word for each in some for word in (each, micro(delays[each]))]
        calls.append(
            SCHEDULE.call(RowKeys(tag), grace=micro(LEASE), only_these=int(only_these), delayed=delayed)
        )
    return _those_there(asked, await SCHEDULE.amany(client, calls))


async def unschedule(client: AnyRedis, members: Sequence[str]) -> Sequence[str]:
    """Remove these members from the schedule and the cache. Return them."""
    calls = [UNSCHEDULE.call(RowKeys(tag), members=some) for tag, some in by_call(members, AT_ONCE)]
    await UNSCHEDULE.amany(client, calls)
    return members


async def _make_due(client: AnyRedis, members: Sequence[str]) -> set[str]:
    asked = by_call(members, AT_ONCE)
    calls = [REFRESH.call(RowKeys(tag), members=some) for tag, some in asked]
    return _those_there(asked, await REFRESH.amany(client, calls))


async def _set_delay(client: AnyRedis, delay: float, members: Sequence[str]) -> set[str]:
    return await schedule(client, dict.fromkeys(members, delay), only_these=True)


def _those_there(asked: Sequence[tuple[str, Sequence[str]]], answers: Sequence[Sequence[int]]) -> set[str]:
    return {
        each
        for (_tag, some), said in zip(asked, answers, strict=True)
        for each, is_there in zip(some, said, strict=True)
        if is_there
    }


def _keys_of_others(members: Sequence[str], there: set[str]) -> set[str]:
    return {name_and_key(each)[1] for each in members if each not in there}


def _above_zero(delay: float) -> float:
    if checked := check_delay(delay):
        return checked
    raise InvalidValue(f"The delay is {delay!r}; it must be above 0 here.")
