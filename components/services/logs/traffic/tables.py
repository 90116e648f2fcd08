"""
The tables that aggregations fill and reports read: their names, and how they are read.

Small tables are read several in a round trip, large ones page by page. Redis serves nobody else while it works on
what one client has sent together, so a round trip asks for some thousand members, which takes milliseconds. If a
table grows meanwhile, a member may come twice, in two pages: the later count is taken.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import pipelined
from components.kit.sync_async import at_once
from components.services.geo import Level
from components.services.logs.keys import JobKeys

_Name = TypeVar("_Name", str, bytes)

#: The table that counts the lines of each day; its members are days.
DAYS = "days"
#: What lines are counted by besides places, hours and statuses, if their format has it.
DIMENSIONS = ("path", "referrer", "agent")
#: The slice of all lines.
ALL = "*"
#: Tables of values are of lines whose request was served (2xx, 304, or no status), or of all others. Each has a limit
#: of its own, so that what scanners ask for in vain takes no place from what there is.
SERVED, UNSERVED = OUTCOMES = ("served", "unserved")
_TOGETHER = 60  # tables whose first pages are read in one round trip
_FIRST = 200  # members of a first page; smaller tables, such as most tables of countries, need no other
_PAGE = 4_000  # members of the other pages, and counts of a round trip
_LONGEST = 19  # digits of a number of 64 bits
_COUNT = re.compile(rb"-?[0-9]{1,%d}" % _LONGEST)
_ESCAPED = str.maketrans({each: f"\\{each}" for each in "\\*?[]"})


def daily(level: Level, day: date) -> str:
    """Return the table that counts the lines of a day by places: "daily:country:2011-10-10"."""
    return f"daily:{level}:{day.isoformat()}"


def hourly(day: date) -> str:
    """Return the table that counts the lines of a day by hour, country and status; its members are "13/US/404"."""
    return f"hourly:{day.isoformat()}"


def answers(day: date) -> str:
    """Return the table of a day by hour and status, all countries together; its members are "13/404"."""
    return f"answers:{day.isoformat()}"


def valued(dimension: str, outcome: str, day: str) -> str:
    """
    Return the table of paths, referrers or agents: of a day. Its members are "*/404/<value>", "13/404/<value>" and
    "@US/404/<value>": of all lines, of an hour, of a country. The script stores each of these slices apart, and the
    sum of each value in the table itself: see flush.lua.
    """
    return f"values:{dimension}:{outcome}:{day}"


def slice_of(table: str, slice_: str) -> str:
    """Return where the members of one slice of a table of values are: "404/<value>"."""
    return f"{table}:{slice_}"


def at_country(country: str) -> str:
    """Return the slice of a country."""
    return f"@{country}"


def member_of(*parts: str) -> str:
    """Return the member for these parts. Countries have no slash: their ids quote it."""
    return "/".join(parts)


def scan(job: str, tables: Sequence[str], beginning: str = "", *parts: str) -> Iterator[dict[bytes, int]]:
    """
    Yield for each table, in this order, its members and their counts; only members with this *beginning*. More
    *parts* are the beginnings of the parts that follow.
    """
    pattern = "/".join(f"{each.translate(_ESCAPED)}*" for each in (beginning, *parts))
    keys, match = JobKeys(job), None if pattern == "*" else pattern
    for some in _parts(tables, _TOGETHER):
        opened = [keys.counts(table) for table in some]
        answers = _ask(lambda pipe, key: pipe.hscan(key, 0, match, _FIRST), opened)
        for key, (cursor, found) in zip(opened, answers, strict=True):
            members = found
            while cursor:
                with redis_errors():
                    page: Any = get_client().hscan(key, cursor, match, _PAGE)
                cursor, found = page
                members.update(found)
            yield _counts(members)


def scores(job: str, tables: Sequence[str], members: Sequence[str | bytes]) -> Iterator[list[int]]:
    """Yield for each table the counts of *members*; 0 for one that is not there."""
    if not members:
        yield from ([] for _ in tables)
        return
    keys = JobKeys(job)
    for some in _parts(tables, max(1, _PAGE // len(members))):
        for found in _ask(lambda pipe, key: pipe.hmget(key, members), map(keys.counts, some)):
            yield [int(count) if count and _is_count(count) else 0 for count in found]


def read(job: str, tables: Sequence[str]) -> Iterator[dict[bytes, int]]:
    """Yield for each of these tables, all of them small, its members and their counts."""
    keys = JobKeys(job)
    for some in _parts(tables, _TOGETHER):
        yield from map(_counts, _ask(lambda pipe, key: pipe.hgetall(key), map(keys.counts, some)))


def present(job: str, tables: Sequence[str]) -> Iterator[bool]:
    """Yield for each table whether it exists."""
    keys = JobKeys(job)
    for some in _parts(tables, _PAGE):
        yield from map(bool, _ask(lambda pipe, key: pipe.exists(key), map(keys.counts, some)))


def drop(job: str, tables: Sequence[str], index: str, members: Sequence[str]) -> None:
    """Remove *tables*, then from the table *index* the *members* by which they were found. It can be repeated."""
    keys = JobKeys(job)
    for some in _parts(tables, _FIRST):
        with redis_errors():
            get_client().unlink(*(keys.counts(table) for table in some))
    for some in _parts(members, _PAGE):
        with redis_errors():
            get_client().hdel(keys.counts(index), *some)


def add_up(sums: dict[_Name, int], found: Mapping[_Name, int]) -> None:
    """Add counts to *sums*, which is faster than update() of a Counter."""
    for each, count in found.items():
        sums[each] = sums.get(each, 0) + count


def _counts(members: Mapping[bytes, bytes]) -> dict[bytes, int]:
    return {member: int(count) for member, count in members.items() if _is_count(count)}


def _is_count(text: bytes) -> bool:
    """Return True if Redis could add to this value. The app writes no other values; reports ignore them."""
    return (len(text) < _LONGEST and text.isdigit()) or _COUNT.fullmatch(text) is not None


def _parts(tables: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (tables[at : at + size] for at in range(0, len(tables), size))


def _ask(put: Callable[[Any, str], object], keys: Iterable[str]) -> list[Any]:
    """Return the answers to the commands that *put* puts into a pipeline for each of *keys*, in one round trip."""
    return at_once(pipelined(get_client(), [*keys], put))
