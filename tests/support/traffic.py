"""Tables of days, filled consistently as by an aggregation of logs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

from components.kit.client import get_client
from components.services.geo import Level
from components.services.logs.keys import JobKeys

LEVELS: Sequence[Level] = ("country", "region", "city")


def id_at(place: str, level: Level) -> str:
    """Return the id of the region or country of a place, like Place.id_at()."""
    return "/".join(place.split("/")[: 1 + LEVELS.index(level)]).rstrip("/")


def tables(
    days: Mapping[date, Mapping[str, int]], levels: Sequence[Level] = LEVELS
) -> dict[str, dict[str, int]]:
    """Return the counts that lines of places add, by their ids."""
    found: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for day, places in days.items():
        for place, lines in places.items():
            found["days"][day.isoformat()] += lines
            for level in levels:
                found[f"daily:{level}:{day.isoformat()}"][id_at(place, level)] += lines
    return {table: dict(members) for table, members in found.items()}


def count(
    days: Mapping[date, Mapping[str, int]], *, job: str = "default", levels: Sequence[Level] = LEVELS
) -> None:
    """Count lines of places, given by their ids, on days."""
    add(tables(days, levels), job=job)


def add(counts: Mapping[str, Mapping[str, int]], *, job: str = "default") -> None:
    pipe = get_client().pipeline(transaction=False)
    for table, members in counts.items():
        for member, lines in members.items():
            pipe.hincrby(JobKeys(job).counts(table), member, lines)
    pipe.execute()
