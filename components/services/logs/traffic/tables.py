"""
The tables that aggregations fill and reports read: their names, and how they are read.

Small tables are read several in a round trip, large ones page by page. Redis serves nobody else while it works on
what one client has sent together, so a round trip asks for some thousand members, which takes milliseconds. If a
table grows meanwhile, a member may come twice, in two pages: the later count is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.services.geo import Level
from components.services.logs.keys import JobKeys

#: The table that counts the lines of each day; its members are days.
DAYS = "days"
#: The table to which a flush adds lines of the present. The script stores it by the minute, for an hour.
LIVE = "live"
_TOGETHER = 60  # tables whose first pages are read in one round trip
_FIRST = 200  # members of a first page; smaller tables, such as most tables of countries, need no other
_PAGE = 4_000  # members of the other pages, and counts of a round trip
_COUNT = re.compile(rb"-?[0-9]{1,19}")
_ESCAPED = str.maketrans({each: f"\\{each}" for each in "\\*?[]"})


def daily(level: Level, day: date) -> str:
    """Return the table that counts the lines of a day by places: "daily:country:2011-10-10"."""
    return f"daily:{level}:{day.isoformat()}"


def hourly(day: date) -> str:
    """Return the table that counts the lines of a day by hour, country and status; its members are "13/US/404"."""
    return f"hourly:{day.isoformat()}"


def live(minute: int) -> str:
    """Return the table of a minute since 1970, by country and status; its members are "US/404"."""
    return f"{LIVE}:{minute}"


def member_of(*parts: str) -> str:
    """Return the member for these parts. Countries have no slash: their ids quote it."""
    return "/".join(parts)


def scan(job: str, tables: Sequence[str], beginning: str = "") -> Iterator[dict[bytes, int]]:
    """Yield for each table, in this order, its members and their counts; only members with this *beginning*."""
    keys, match = JobKeys(job), f"{beginning.translate(_ESCAPED)}*" if beginning else None
    for some in _parts(tables, _TOGETHER):
        opened = [("hscan", keys.counts(table), 0, match, _FIRST) for table in some]
        for (_command, key, *_), (cursor, found) in zip(opened, _ask(opened), strict=True):
            members = dict(found)
            while cursor:
                ((cursor, found),) = _ask([("hscan", key, cursor, match, _PAGE)])
                members.update(found)
            yield {member: int(count) for member, count in members.items() if _is_count(count)}


def scores(job: str, tables: Sequence[str], members: Sequence[str | bytes]) -> Iterator[list[int]]:
    """Yield for each table the counts of *members*; 0 for one that is not there."""
    if not members:
        yield from ([] for _ in tables)
        return
    keys = JobKeys(job)
    for some in _parts(tables, max(1, _PAGE // len(members))):
        for found in _ask([("hmget", keys.counts(table), members) for table in some]):
            yield [int(count) if count and _is_count(count) else 0 for count in found]


def read_clock() -> int:
    """Return the seconds since 1970, by the clock of Redis."""
    with redis_errors():
        seconds, _micros = get_client().time()
    return int(seconds)


def present(job: str, tables: Sequence[str]) -> Iterator[bool]:
    """Yield for each table whether it exists."""
    keys = JobKeys(job)
    for some in _parts(tables, _PAGE):
        yield from map(bool, _ask([("exists", keys.counts(table)) for table in some]))


def drop(job: str, tables: Sequence[str], index: str, members: Sequence[str]) -> None:
    """Remove *tables*, then from the table *index* the *members* by which they were found. It can be repeated."""
    keys = JobKeys(job)
    for some in _parts(tables, _TOGETHER):
        _ask([("unlink", keys.counts(table)) for table in some])
    for some in _parts(members, _PAGE):
        _ask([("hdel", keys.counts(index), *some)])


def _is_count(text: bytes) -> bool:
    """Return True if Redis could add to this value. The app writes no other values; reports ignore them."""
    return _COUNT.fullmatch(text) is not None


def _parts(tables: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (tables[at : at + size] for at in range(0, len(tables), size))


def _ask(commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    with redis_errors():
        pipe = get_client().pipeline(transaction=False)
        for command, *args in commands:
            getattr(pipe, command)(*args)
        return list(pipe.execute())
