"""
What cached rows are made of: checks, members, keys, calls of scripts by bucket.

A row is a member, its name and key with a colon between, and falls into one of 32 buckets. A bucket has a schedule,
and beside it delays and failures; a row has a string of JSON, and while it is being loaded a claim. The claim
decides: who stores must still have it. It is taken away by an invalidation and by the next claim. So of the loads
that are stored each began after the one before was stored, and none that began before an invalidation is stored after
it. All instants are microseconds of the server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster

from components.exceptions import InvalidDuration, InvalidName
from components.kit.buckets import bucket
from components.kit.client import AnyRedis
from components.kit.scripts import Call, Script
from components.kit.together import together
from components.kit.values import LONGEST, check_name, check_seconds
from components.services.rows import keys

_T = TypeVar("_T")

#: Seconds that a load may take, as a rule: then another may load the row, and has twice as long for it.
LEASE = 5.0
MAX_CACHE_NAME = 200  # characters; together with a key as long as any name
MAX_KEY = 290
SHORTEST_DELAY = 0.01  # seconds: below that a cache is no help
AT_ONCE = 500  # members in a call: a millisecond or two of the server


def check_cache_name(name: object) -> str:
    """*name*, if rows can be called so. Raises InvalidName."""
    checked = check_name("row cache", name)
    if len(checked) > MAX_CACHE_NAME or ":" in checked:
        raise InvalidName(
            f"A row cache cannot be called {checked[:60]!r}: its name is 1 to {MAX_CACHE_NAME} characters, "
            "without a colon."
        )
    return checked


@lru_cache(maxsize=16_384, typed=True)  # as many are read again and again
def check_key(key: Hashable) -> str:
    """The key of a row as text: it is given as that or as a whole number. Raises InvalidName."""
    text = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
    checked = check_name("row", text)
    if len(checked) > MAX_KEY:
        raise InvalidName(f"A row cannot be called {checked[:60]!r}…: its key is 1 to {MAX_KEY} characters.")
    return checked


def check_delay(delay: object) -> float:
    """*delay*, if rows can be loaded so often; 0 or less is for never. Raises InvalidDuration."""
    is_number = isinstance(delay, int | float) and not isinstance(delay, bool)
    if is_number and delay <= 0:  # type: ignore[operator]
        return 0.0
    checked = check_seconds("delay", delay)
    if checked < SHORTEST_DELAY:
        raise InvalidDuration(
            f"The delay is {delay!r}; it must be {SHORTEST_DELAY:g} to {LONGEST:,} seconds, or 0 to unschedule."
        )
    return checked


def micro(seconds: float) -> int:
    return round(seconds * 1_000_000)


def member(name: str, key: str) -> str:
    return f"{name}:{key}"


def name_and_key(member: str) -> tuple[str, str]:
    name, _colon, key = member.partition(":")
    return name, key


class Keys:
    """The keys of one bucket, for each script."""

    def __init__(self, tag: str) -> None:
        schedule, delays = keys.rows_schedule(tag), keys.rows_delays(tag)
        failures, counts = keys.rows_failures(tag), keys.rows_counts(tag)
        row, claim = keys.row(tag, ""), keys.row_claim(tag, "")
        self.schedule = [schedule, delays, row, claim, counts]
        self.refresh = [schedule, claim]
        self.unschedule = [schedule, delays, failures, row, claim, counts]
        self.invalidate = [schedule, row, claim]
        self.begin = [schedule, row, claim]
        self._due = [schedule, delays, claim]
        self.store = [schedule, delays, failures, row, claim, counts]
        self.fail = [schedule, failures, claim, counts]
        self.release = [schedule, claim]
        self._tag = tag

    def claim(self, daemon: str) -> list[str]:
        return [*self._due, keys.rows_call(self._tag, daemon), keys.rows_counts(self._tag)]


def by_bucket(members: Iterable[str]) -> dict[str, list[str]]:
    """The members of each bucket, each once."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for each in dict.fromkeys(members):
        found[bucket(each)].append(each)
    return found


def parts(things: Iterable[_T], size: int = AT_ONCE) -> Iterator[list[_T]]:
    """*things*, as many at a time as one call may have."""
    rest = iter(things)
    while some := list(islice(rest, size)):
        yield some


async def tell(client: AnyRedis, script: Script, which: str, groups: Mapping[str, Sequence[str]]) -> None:
    """A call of *script* for the members of each bucket; *which* names its keys."""
    await send(
        client,
        script,
        [(getattr(Keys(tag), which), some) for tag, members in groups.items() for some in parts(members)],
    )


async def send(client: AnyRedis, script: Script, calls: Sequence[Call]) -> list[Any]:
    """The answers to *calls*, in one round trip to each node, and in none if there are no calls."""
    if calls and isinstance(client, AsyncRedis | AsyncRedisCluster):
        return await together(script, calls)
    if len(calls) == 1:
        [(names, args)] = calls
        return [await script.acall(client, keys=names, args=args)]
    return await script.amany(client, calls) if calls else []


def each_once(given: Iterable[Hashable]) -> list[str]:
    """The keys, checked, each once and in order. Raises InvalidName."""
    return list(dict.fromkeys(map(check_key, given)))
