"""What lies in Redis and cannot be read, since a later release or somebody else wrote it: it fails no list."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date
from pathlib import Path

from redis import Redis

from components.services.logs import (
    Copier,
    LogStream,
    Problem,
    Sample,
    WorkerRecord,
    dead_chunks,
    list_jobs,
    look_at,
    note_job,
)
from components.services.logs.keys import JobKeys, index
from components.services.logs.traffic import Traffic
from tests.support.logs import FILE, fill, ids, joined, let_leases_pass, lines, stream

JUNK = [
    *(b"", b"\xff\xfe", b"{", b"null", b"[1]", b"3", b"[" * 100_000, b"1 2 3", b"x" * 1_000),
    *(b'{"line": "x"}', b'{"line": 1, "reason": 2, "file": null, "byte": 1.5, "head": []}'),
]
SAID = WorkerRecord("node-1", 7, "2026-01-01T12:00:00+00:00", 1_000, 3, 250.5, "book", "city", "numba")


def test_samples_that_cannot_be_read_are_shown_as_they_are(redis: Redis) -> None:
    aggregation = joined()
    good = Sample("date", "a.log", 3, 40, "nonsense")
    aggregation.consumer().sample([good])
    key = JobKeys("default").samples("geo")
    redis.zadd(key, {**dict.fromkeys(JUNK, 1), json.dumps({**asdict(good), "more": 1}).encode(): 2})

    found = [each for each, _at in aggregation.samples(100)]

    assert found[:2] == [good, good]
    assert {each.reason for each in found[2:]} == {"unreadable"}
    assert {each.head for each in found[2:]} == {
        junk[:200].decode("utf-8", "backslashreplace") for junk in JUNK
    }


def test_files_whose_records_cannot_be_read_are_listed_and_not_copied(redis: Redis, tmp_path: Path) -> None:
    problems: list[Problem] = []
    copier = Copier(LogStream(), tell=problems.append)
    for name in ("bad", "good"):
        (tmp_path / name).write_bytes(lines(0 if name == "bad" else 500, 200))
        copier.copy(tmp_path / name)
    [bad] = [each.fingerprint for each in LogStream().files() if each.name.endswith("bad")]
    for junk in JUNK:
        redis.hset(JobKeys("default").files, bad, junk)

        states = sorted(each.state for each in LogStream().files())

        assert states == ["done", "unreadable"]
        problems.clear()
        assert [copier.copy(tmp_path / name) for name in ("bad", "good")] == ["failed", "known"]
        assert ["does not know the format" in str(each) for each in problems] == [True]


def test_a_chunk_whose_descriptor_cannot_be_read_keeps_no_other_from_being_counted(redis: Redis) -> None:
    to, aggregation = stream(), joined(tries=2)
    [first] = fill(to, 1)
    key = JobKeys("default").stream
    odd = [redis.xadd(key, fields).decode() for fields in ({"file": "x"}, {"a": "b", "c": "d"})]
    redis.hdel(JobKeys("default").files, FILE)
    last = fill(stream(), 1)

    consumer = aggregation.consumer()
    chunks = consumer.claim()

    assert ids(chunks) == [first, *last]
    consumer.flush(chunks, {"lines": {"all": 2}})
    for _ in range(2):
        let_leases_pass(redis, aggregation)
        assert consumer.claim() == []
    assert sorted(each for each, _at in aggregation.dead()) == odd
    assert sorted(each.id for each in dead_chunks("default", "geo")) == odd


def test_a_job_is_looked_at_although_something_in_it_cannot_be_read(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined()
    note_job("default")
    redis.sadd(index("default"), b"\xff")
    redis.hset(JobKeys("default").state, mapping={"lines": "many", "raw": "", "limit": "none"})
    redis.hset(JobKeys("default").aggregations, "geo", "1")
    redis.hset(JobKeys("default").counts("totals:geo"), mapping={b"\xff": "3", "lines": "x", "counted": "7"})
    redis.zadd(JobKeys("default").dead, {b"\xff geo": 1, b"nonsense geo": 2, b"5-0 geo": 3})

    [status] = look_at("default").aggregations

    assert dict(status.totals) == {"\\xff": 3, "lines": 0, "counted": 7}
    assert look_at("default").lines == 0
    assert status.dead == 3
    assert [each.id for each in dead_chunks("default", "geo")] == ["5-0", "nonsense", "\\xff"]
    assert [each for each, _at in aggregation.dead()] == ["5-0", "nonsense", "\\xff"]
    assert list_jobs() == ["\\xff", "default"]


def test_tables_and_instants_of_an_aggregation_are_read_although_something_in_them_cannot_be(
    redis: Redis,
) -> None:
    aggregation = joined()
    counts = {b"\xff": "3", "US": "7", "x": "many", "y": "", "z": "1.5", "w": "9" * 40, "debt": "-2"}
    redis.hset(JobKeys("default").counts("daily"), mapping=counts)
    redis.zadd(JobKeys("default").dead, {"5-0 geo": float("inf"), "4-0 geo": 1_000, "3-0 geo": -1e300})
    redis.zadd(JobKeys("default").samples("geo"), {"{}": float("inf")})

    assert aggregation.table("daily") == {"\\xff": 3, "US": 7, "debt": -2}
    years = [("5-0", 9999), ("4-0", 1970), ("3-0", 9999)]
    assert [(name, at.year) for name, at in aggregation.dead()] == years
    assert [(each.id, each.at.year) for each in dead_chunks("default", "geo")] == years
    assert [at.year for _sample, at in aggregation.samples()] == [9999]


def test_a_worker_that_says_what_cannot_be_read_is_there_all_the_same(redis: Redis) -> None:
    aggregation = joined()
    good, other = aggregation.consumer(), aggregation.consumer()
    for each in (good, other):
        each.claim()
        each.tell(SAID)
    for junk in [*JUNK, b'{"host": "node-1", "pid": 7, "mood": "good"}']:
        redis.set(JobKeys("default").worker(other.id), junk)

        records = {each.id: each.record for each in aggregation.workers()}

        assert records[good.id] == SAID
        assert records[other.id] in (WorkerRecord(), WorkerRecord(lines=1), WorkerRecord("node-1", 7))
        assert look_at("default").aggregations[0].rate == SAID.rate


def test_reports_leave_out_what_is_no_count_and_no_day(redis: Redis) -> None:
    days = {"2011-10-10": 3, "2011-10-11": "x", "someday": 5, b"\xff": 1, "2011-10-12": ""}
    redis.hset(JobKeys("default").counts("days"), mapping=days)
    daily = {"US": 3, "DE": "nonsense", b"\xff": 1, "FR": "9" * 20}
    redis.hset(JobKeys("default").counts("daily:country:2011-10-10"), mapping=daily)
    traffic, day = Traffic(), date(2011, 10, 10)

    assert [(each.day, each.lines) for each in traffic.days()] == [(day, 3)]
    report = traffic.report(first=day, last=day)
    assert [(row.id, row.count) for row in report.rows] == [("US", 3), ("\ufffd", 1)]
