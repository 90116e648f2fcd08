"""
RowControls: what the control room does to rows, of which it knows names and keys, and no shape.

All rows of a name are found by going through the buckets, a thousand members at a time, each part of which is done
before the next is looked for: others get their turn between them, and who is stopped has done some. A row that leaves
the schedule meanwhile is left alone, and what is done twice is as done once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from components.exceptions import InvalidDuration
from components.kit.at_once import at_once
from components.kit.buckets import BUCKETS
from components.kit.client import AnyRedis, get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.services.rows import keys
from components.services.rows.core import (
    LEASE,
    Keys,
    by_bucket,
    check_cache_name,
    check_delay,
    each_once,
    member,
    micro,
    name_and_key,
    parts,
    send,
)

_refresh = Script("rows/refresh")
_schedule = Script("rows/schedule")
_unschedule = Script("rows/unschedule")

_AT_ONCE = 1_000  # members that are looked at in one call

#: Given a client and members, it comes to those that it found on the schedule.
_Act: TypeAlias = Callable[[Any, Sequence[str]], Any]


class Changed(NamedTuple):
    """What was done to all rows of a name."""

    rows: int
    #: The bucket to go on from; 0 if all is done.
    rest: int = 0

    @property
    def left(self) -> float:
        """Which part of all is left, about."""
        return 1 - self.rest / len(BUCKETS) if self.rest else 0.0


class RowControls:
    """The rows called *name*. Every method raises RedisUnavailable, and InvalidName for what can be no key."""

    def __init__(self, name: str) -> None:
        self.name = check_cache_name(name)

    def refresh(self, *keys: str | int) -> set[str]:
        """RowCache.refresh()."""
        return at_once(refresh(get_client(), self.name, keys))

    def set_delay(self, delay: float, *keys: str | int) -> set[str]:
        """
        Let those of these rows that are on the schedule be loaded every *delay* seconds. The keys of the others.

        Raises InvalidDuration, also of 0: to remove a row is another thing.
        """
        there = at_once(_set_delay(get_client(), _some_delay(delay), _members(self.name, keys)))
        return {name_and_key(each)[1] for each in _members(self.name, keys) if each not in there}

    def remove(self, *keys: str | int) -> None:
        """RowCache.unschedule()."""
        at_once(_remove(get_client(), _members(self.name, keys)))

    def refresh_all(self, *, start: int = 0, most: int | None = None) -> Changed:
        """
        Let all that are on the schedule be due now: those of the buckets from *start* on, about *most* of them.

        None for all there are. What is left says from where to go on.
        """
        return self._each(_refresh_members, start, most)

    def set_delay_of_all(self, delay: float, *, start: int = 0, most: int | None = None) -> Changed:
        """Let all that are on the schedule be loaded every *delay* seconds. Raises InvalidDuration."""
        seconds = _some_delay(delay)
        return self._each(lambda client, members: _set_delay(client, seconds, members), start, most)

    def remove_all(self, *, start: int = 0, most: int | None = None) -> Changed:
        """Forget all that are on the schedule. What readers have cached beside it ends by itself."""
        return self._each(_remove, start, most)

    def _each(self, act: _Act, start: int, most: int | None) -> Changed:
        client, count = get_client(), 0
        for number in range(max(0, start), len(BUCKETS)):
            if most is not None and count >= most:
                return Changed(count, number)
            for members in self._members_of(BUCKETS[number]):
                count += len(at_once(act(client, members)))
        return Changed(count)

    def _members_of(self, tag: str) -> Iterator[list[str]]:
        client: Any = get_client()
        cursor, pattern = 0, member(escaped(self.name), "*")
        while True:
            with redis_errors():
                cursor, found = client.zscan(keys.rows_schedule(tag), cursor, pattern, _AT_ONCE)
            if found:
                yield [text_of(each) for each, _due in found]
            if not cursor:
                return


async def refresh(client: AnyRedis, name: str, keys: Sequence[str | int]) -> set[str]:
    """RowCache.refresh()."""
    wanted = _members(name, keys)
    there = await _refresh_members(client, wanted)
    return {name_and_key(each)[1] for each in wanted if each not in there}


def escaped(name: str) -> str:
    """*name* as a pattern that matches nothing else."""
    return re.sub(r"([*?\[\]\\^-])", r"\\\1", name)


def _members(name: str, keys: Sequence[str | int]) -> list[str]:
    return [member(name, key) for key in each_once(keys)]


def _some_delay(delay: float) -> float:
    if checked := check_delay(delay):
        return checked
    raise InvalidDuration(f"The delay is {delay!r}; it must be above 0 here.")


async def _refresh_members(client: AnyRedis, members: Sequence[str]) -> set[str]:
    calls = _calls(members)
    answers = await send(client, _refresh, [(Keys(tag).refresh, some) for tag, some in calls])
    return _those_there(calls, answers)


async def _set_delay(client: AnyRedis, delay: float, members: Sequence[str]) -> set[str]:
    return await schedule(client, dict.fromkeys(members, delay), only_these=True)


async def schedule(client: AnyRedis, delays: Mapping[str, float], *, only_these: bool = False) -> set[str]:
    """Let these members be loaded so often, in seconds, or *only_these* that are; those that were."""
    calls = _calls(delays)
    head = [micro(LEASE), int(only_these)]
    sent = [(tag, [word for each in some for word in (each, micro(delays[each]))]) for tag, some in calls]
    answers = await send(client, _schedule, [(Keys(tag).schedule, [*head, *words]) for tag, words in sent])
    return _those_there(calls, answers)


async def _remove(client: AnyRedis, members: Sequence[str]) -> Sequence[str]:
    await send(client, _unschedule, [(Keys(tag).unschedule, some) for tag, some in _calls(members)])
    return members


def _those_there(calls: Sequence[tuple[str, Sequence[str]]], answers: Sequence[Sequence[int]]) -> set[str]:
    """The members of the calls of which the answer is 1."""
    return {
        each
        for (_tag, some), said in zip(calls, answers, strict=True)
        for each, is_there in zip(some, said, strict=True)
        if is_there
    }


def _calls(members: Iterable[str]) -> list[tuple[str, list[str]]]:
    return [(tag, some) for tag, group in by_bucket(members).items() for some in parts(group)]
