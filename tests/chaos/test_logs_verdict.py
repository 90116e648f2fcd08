"""The verdict on logs finds what it is to find, and what it holds them against is what a plain loop counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from redis import Redis

from components.services.geo import UNKNOWN, GeoTable, Level
from components.services.logs import PLACES, Aggregation, LogStream, Sample, readblocks, readlines
from components.services.logs.keys import JobKeys
from components.services.logs.lines import Book, Reason
from tests.chaos.visits import plan, world
from tests.chaos.visits.logs import write_logs
from tests.chaos.visits.observer import Observer
from tests.chaos.visits.verdict import Verdict
from tests.support.geo import import_networks
from tests.support.logs import append, stream

pytestmark = pytest.mark.slow

LEVELS: tuple[Level, ...] = ("country", "region", "city")
BAD_LINE = "256.1.1.1 2011-10-10 13:55:36 achievement-1"
LINES, RAW = 10, 470
TABLES = {"daily:country:2011-10-10": {"US": 3, "DE": 1}, "days": {"2011-10-10": 4}}


def test_a_sum_during_writes_equals_a_loop_over_the_lines(redis: Redis, tmp_path: Path) -> None:
    import_networks(tmp_path, world.records())
    loop = Loop()
    logs = tmp_path / "logs"
    logs.mkdir()

    sums = write_logs(logs, 6_000, seed=1)

    for path in logs.iterdir():
        for line in readlines(path):
            loop.count(line.removesuffix(b"\r"))
    totals = loop.tables.pop("totals")
    assert sums.tables() == {**loop.tables, "totals:places": totals, "totals:events": totals}
    assert sums.lines == totals["lines"] == 6_000
    assert sums.bytes == sum(block.end - block.start for path in logs.iterdir() for block in readblocks(path))


class Loop:
    """A plain loop over lines."""

    def __init__(self) -> None:
        self._table, self._form = GeoTable.load(), Book()
        self.tables: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def count(self, line: bytes) -> None:
        totals = self.tables["totals"]
        totals["lines"] += 1
        fields = self._form.read(line) if line else Reason.EMPTY
        if isinstance(fields, Reason):
            totals[fields.name.lower()] += 1
            return
        day = date.fromordinal(fields.day)
        if not 1970 <= day.year <= 2030:
            totals["late" if day.year < 1970 else "future"] += 1
            return
        totals["counted"] += 1
        self.tables["days"][str(day)] += 1
        self.tables[f"events:{day}"][line.split()[-1].decode()] += 1
        self.tables["checks"]["addresses"] += fields.address & 0xFFFF if fields.version == 4 else 0
        place = self._table.find(line.split()[0].decode()) or UNKNOWN
        for level in LEVELS:
            self.tables[f"daily:{level}:{day}"][place.id_at(level)] += 1
        hour = line.split()[2][:2].decode()
        self.tables[f"hourly:{day}"][f"{hour}/{place.id_at('country')}/"] += 1
        self.tables[f"answers:{day}"][f"{hour}/"] += 1


def _keep(name: str, samples: list[Sample]) -> None:
    Aggregation(name, job=plan.JOB).keep(samples)


@pytest.fixture
def counted(redis: Redis) -> Redis:
    """A job in which all has gone well."""
    for name in (PLACES, plan.EVENTS):
        Aggregation(name, job=plan.JOB).join()
        _keep(name, [Sample("address", "a.log", line, 0, BAD_LINE) for line in range(100)])
    for table, counts in TABLES.items():
        redis.hset(JobKeys(plan.JOB).counts(table), mapping=dict(counts))
    redis.hset(JobKeys(plan.JOB).state, mapping={"lines": LINES, "raw": RAW, "bytes": 0, "chunks": 0})
    return redis


def judge(redis: Redis) -> list[str]:
    return Verdict(redis, TABLES, lines=LINES, raw=RAW).complaints


def test_correct_settings_raise_no_complaint(counted: Redis) -> None:
    assert judge(counted) == []


BAD: dict[str, Callable[[Redis], object]] = {
    "'US' is 4 instead of 3": lambda redis: redis.hincrby(_table("daily:country:2011-10-10"), "US", 1),
    "'US' is None instead of 3": lambda redis: redis.hdel(_table("daily:country:2011-10-10"), "US"),
    "'FR' is 1 instead of None": lambda redis: redis.hset(_table("daily:country:2011-10-10"), "FR", "1"),
    "days: '2011-10-10' is None instead of 4": lambda redis: redis.delete(_table("days")),
    "more: '2011' is 1 instead of None": lambda redis: redis.hset(_table("more"), "2011", "1"),
    "lines is 11 instead of 10": lambda redis: redis.hincrby(JobKeys(plan.JOB).state, "lines", 1),
    "raw is 469 instead of 470": lambda redis: redis.hincrby(JobKeys(plan.JOB).state, "raw", -1),
    "bytes is -1 instead of 0": lambda redis: redis.hincrby(JobKeys(plan.JOB).state, "bytes", -1),
    "1 chunks are left": lambda redis: redis.set(JobKeys(plan.JOB).chunk("1-0"), b"lines"),
    "1 descriptors are left": lambda redis: redis.xadd(JobKeys(plan.JOB).stream, {"file": "a.log"}),
    "1 chunks are noted": lambda redis: redis.hset(JobKeys(plan.JOB).counted, "1-0", " 1 "),
    "1 chunks are given up": lambda redis: redis.zadd(JobKeys(plan.JOB).dead, {"1-0 places": 1}),
}


@pytest.mark.parametrize("says", BAD)
def test_a_missing_setting_is_a_complaint(counted: Redis, says: str) -> None:
    BAD[says](counted)

    [complaint] = judge(counted)

    assert says in complaint


def test_a_held_lock_is_a_lock(counted: Redis) -> None:
    counted.xadd(JobKeys(plan.JOB).stream, {"file": "a.log"}, id="1-0")
    counted.xreadgroup(PLACES, "somebody", {JobKeys(plan.JOB).stream: ">"})
    counted.xdel(JobKeys(plan.JOB).stream, "1-0")

    assert judge(counted) == ["1 chunks are held in places."]


def test_only_valid_samples_are_shown_of_rejected_lines(counted: Redis) -> None:
    counted.zpopmin(JobKeys(plan.JOB).samples(PLACES))
    _keep(plan.EVENTS, [Sample("date", "a.log", 100, 0, BAD_LINE)])

    assert judge(counted) == [
        "99 rejected lines are shown of places, instead of 100.",
        f"{BAD_LINE!r} is shown of events, rejected for its date.",
    ]


def _table(name: str) -> str:
    return JobKeys(plan.JOB).counts(name)


def test_the_observer_sees_what_is_in_flight_and_complains_of_too_much_and_of_wrong_sums(
    redis: Redis,
) -> None:
    for name in (PLACES, plan.EVENTS):
        Aggregation(name, job=plan.JOB).join()
    job: LogStream = stream(job=plan.JOB)
    append(job, 0)
    append(job, 1)
    observer = Observer("redis://")
    there = job.status()
    redis.hset(_table("totals:places"), "lines", "20")

    observer.look(redis)
    assert (observer.bytes, observer.chunks, observer.lines) == (there.bytes, 2, 20)
    assert observer.complaints == []
    redis.hincrby(JobKeys(plan.JOB).state, "bytes", -1)
    observer.look(redis)
    redis.hincrby(JobKeys(plan.JOB).state, "bytes", 1)
    redis.append(JobKeys(plan.JOB).chunk("1-0"), bytes(plan.LIMIT))
    observer.look(redis)

    assert [
        f"{there.bytes:,} bytes of 2 chunks were in flight, said to be {there.bytes - 1:,} of 2.",
        f"{there.bytes + plan.LIMIT:,} bytes were in flight, more than {plan.LIMIT:,}.",
    ] == observer.complaints[:2]
