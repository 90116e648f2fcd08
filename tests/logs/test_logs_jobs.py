"""Jobs: what is in flight, who counts it and how far behind; what cannot be read there; and without Redis."""

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.exceptions import LogsFull, RedisUnavailable
from components.services.logs import (
    Aggregation,
    Chunk,
    Copier,
    LogStream,
    Place,
    Problem,
    Sample,
    WorkerRecord,
    dead_chunks,
    list_jobs,
    look_at,
    note_job,
)
from components.services.logs import stream as stream_module
from components.services.logs.jobs import MOST_WAITING
from components.services.logs.keys import JobKeys, index
from components.services.logs.traffic import Traffic
from tests.support.logs import FILE, append, blocks, fill, ids, joined, let_leases_pass, lines, stream
from tests.support.snapshots import snapshot

Patch = pytest.MonkeyPatch

SAID = WorkerRecord("node-1", 7, "2026-01-01T12:00:00+00:00", 1_000, 3, 250.5, "book", "city", "numba")


def test_jobs_are_listed_from_their_first_producer_on(redis: Redis) -> None:
    assert list_jobs() == []
    status = look_at("nowhere")
    assert (status.is_used, status.bytes, status.limit, status.oldest) == (False, 0, None, None)
    stream(job="nightly").recognise(b"a line\n", "access.log")
    note_job("default")
    note_job("default")
    assert list_jobs() == ["default", "nightly"]


def test_samples_and_tables_are_kept_until_they_are_dropped_and_no_more_than_a_hundred(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined("one")
    consumer = aggregation.consumer()
    consumer.flush(consumer.claim(), {"daily:country:2011-10-10": {"US": 1}, "days": {"2011-10-10": 1}})
    samples = JobKeys("default").samples("one")
    redis.zadd(samples, {f"{number}": 1e13 for number in range(100)})  # of a clock that was far ahead
    for number in range(300):
        consumer.sample([Sample("date", "a.log", number, 1, "x")])
    assert (redis.zcard(samples), redis.zscore(samples, "0")) == (100, None)

    assert aggregation.drop(["daily:country:2011-10-10", "nothing"]) == 1
    assert aggregation.drop([]) == 0
    assert aggregation.table("daily:country:2011-10-10") == {}
    for _ in range(2):
        aggregation.leave()
    assert aggregation.table("days") == {"2011-10-10": 1}
    assert not redis.exists(samples)


def test_data_in_flight_is_shown_with_the_limit_of_the_last_producer(redis: Redis) -> None:
    append(stream(5_000), 0)
    append(stream(6_000), 1)
    before, known = snapshot(redis), stream().status()

    status = look_at("default")

    assert snapshot(redis) == before
    assert (status.is_used, status.oldest is None, status.limit) == (True, False, 6_000)
    assert (status.bytes, status.chunks, status.lines, status.raw_bytes) == (
        *(known.bytes, 2, 20),
        known.raw_bytes,
    )
    with pytest.raises(LogsFull):
        append(stream(status.bytes), 2, wait=0)
    assert look_at("default").limit == status.bytes


def test_an_aggregation_tells_what_it_holds_what_waits_and_how_far_behind_it_is(redis: Redis) -> None:
    fill(stream(), 4)
    aggregation, idle = joined(lease=45), joined("idle")
    consumer = aggregation.consumer()
    counted, *_held = consumer.claim(3)
    consumer.flush([counted], {"totals:geo": {"lines": 12, "counted": 10, "date": 2}})
    consumer.tell(SAID)

    geo, other = look_at("default").aggregations

    assert (geo.name, geo.lease, geo.claimed, geo.waiting, geo.dead) == ("geo", 45, 2, 1, 0)
    assert geo.totals == {"lines": 12, "counted": 10, "date": 2}
    assert geo.lag is not None
    assert geo.rate == 250.5
    assert (other.name, other.claimed, other.waiting, other.totals) == (idle.name, 0, 4, {})


def test_lag_and_age_are_those_of_the_oldest_chunk_by_the_clock_of_redis(redis: Redis) -> None:
    name = JobKeys("default").stream
    now = redis.time()[0] * 1_000
    for seconds in (90, 60, 30):
        fields = {"file": "a", "start": 0, "end": 9, "line": 1, "lines": 2}
        redis.xadd(name, fields, id=f"{now - seconds * 1_000}-0")
    aggregation = joined()
    consumer = aggregation.consumer()

    status = look_at("default")
    assert status.oldest is not None
    assert 90 <= status.oldest < 120
    consumer.flush(consumer.claim(1), {})
    for others_hold in (False, True):
        [found] = look_at("default").aggregations
        assert found.lag is not None
        assert 60 <= found.lag < 90, others_hold
        consumer.claim(2)
    consumer.flush(list(consumer.held.values()), {})

    [found] = look_at("default").aggregations
    assert found.lag is None


def test_a_worker_is_alive_as_long_as_it_says_something(redis: Redis) -> None:
    fill(stream(), 3)
    aggregation = joined()
    living, dying, idle, silent = (aggregation.consumer() for _ in range(4))
    living.claim(1)
    dying.claim(2)
    idle.claim()
    silent.claim()
    living.tell(SAID)
    idle.tell(SAID)

    workers = {each.id: (each.record, each.pending) for each in aggregation.workers()}

    assert workers == {dying.id: (None, 2), living.id: (SAID, 1), idle.id: (SAID, 0)}


def test_chunks_that_wait_are_counted_up_to_a_bound(redis: Redis) -> None:
    pipe = redis.pipeline()
    for number in range(MOST_WAITING + 5):
        pipe.xadd(JobKeys("default").stream, {"file": "a", "line": number, "lines": 1})
    pipe.execute()
    joined()
    assert [each.waiting for each in look_at("default").aggregations] == [MOST_WAITING]


def test_consumers_that_were_killed_are_forgotten_later(redis: Redis, monkeypatch: Patch) -> None:
    fill(stream(), 1)
    aggregation = joined()
    for _ in range(2):
        aggregation.consumer().claim(1)  # the first holds the chunk
    of_group = JobKeys("default").stream, "geo"
    assert len(redis.xinfo_consumers(*of_group)) == 2

    aggregation.join()
    assert len(redis.xinfo_consumers(*of_group)) == 2
    monkeypatch.setattr("components.services.logs.aggregation._GONE", 0)
    aggregation.join()

    [left] = redis.xinfo_consumers(*of_group)
    assert left["pending"] == 1


def test_no_more_files_are_known_than_the_most(redis: Redis, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(stream_module, "MOST_FILES", 3)
    problems: list[Problem] = []
    copier = Copier(LogStream(), tell=problems.append)
    for number in range(4):
        (tmp_path / str(number)).write_bytes(lines(100 * number, 50))

    outcomes = [copier.copy(tmp_path / str(number)) for number in range(4)]

    assert outcomes == ["copied", "copied", "copied", "failed"]
    assert len(problems) == 1
    with pytest.raises(LogsFull, match="--forget DAYS"):
        LogStream().recognise(b"another\n", "another")
    assert [copier.copy(tmp_path / str(number)) for number in range(3)] == ["known"] * 3
    assert redis.hlen(JobKeys("default").files) == redis.zcard(JobKeys("default").seen) == 3
    redis.zadd(JobKeys("default").seen, {redis.zrange(JobKeys("default").seen, 0, 0)[0]: 1})
    assert LogStream().forget(86_400) == 1
    assert copier.copy(tmp_path / "3") == "copied"


JUNK = [
    *(b"", b"\xff\xfe", b"{", b"null", b"[1]", b"3", b"[" * 100_000, b"1 2 3", b"x" * 1_000),
    *(b'{"line": "x"}', b'{"line": 1, "reason": 2, "file": null, "byte": 1.5, "head": []}'),
]


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


def test_reports_leave_out_what_is_no_count_and_no_day(redis: Redis) -> None:
    days = {"2011-10-10": 3, "2011-10-11": "x", "someday": 5, b"\xff": 1, "2011-10-12": ""}
    redis.hset(JobKeys("default").counts("days"), mapping=days)
    daily = {"US": 3, "DE": "nonsense", b"\xff": 1, "FR": "9" * 20}
    redis.hset(JobKeys("default").counts("daily:country:2011-10-10"), mapping=daily)
    traffic, day = Traffic(), date(2011, 10, 10)
    assert [(each.day, each.lines) for each in traffic.days()] == [(day, 3)]
    report = traffic.report(first=day, last=day)
    assert [(row.id, row.count) for row in report.rows] == [("US", 3), ("\ufffd", 1)]


AGGREGATION = Aggregation("geo")
CONSUMER = AGGREGATION.consumer()
STREAM = LogStream()

CALLS: list[Callable[[], Any]] = [
    lambda: note_job("default"),
    lambda: STREAM.recognise(b"a line", "a.log", is_exact=True),
    lambda: STREAM.append(FILE, blocks(1)[0], name="a.log"),
    lambda: STREAM.finish(FILE, Place(1, 1, "-"), after=0, name="a.log", size=1, state="done"),
    lambda: list(STREAM.files()),
    lambda: STREAM.forget(1),
    STREAM.status,
    AGGREGATION.join,
    AGGREGATION.leave,
    AGGREGATION.dead,
    AGGREGATION.samples,
    AGGREGATION.workers,
    lambda: AGGREGATION.resend(["1-0"]),
    lambda: AGGREGATION.discard(["1-0"]),
    lambda: AGGREGATION.table("days"),
    lambda: AGGREGATION.drop(["days"]),
    CONSUMER.claim,
    CONSUMER.release,
    CONSUMER.now,
    CONSUMER.is_drained,
    lambda: CONSUMER.wait(1),
    lambda: CONSUMER.read(Chunk("1-0", 1, "a.log", 0, 100, 1, 2)),
    lambda: CONSUMER.tell(WorkerRecord("host")),
    lambda: CONSUMER.sample([Sample("date", "a.log", 1, 0, "")]),
    Traffic().days,
    Traffic().totals,
    lambda: Traffic().report(first=date(2011, 1, 1), last=date(2011, 1, 2)),
    list_jobs,
    lambda: look_at("default"),
    lambda: dead_chunks("default", "geo"),
]


def test_each_call_says_that_redis_does_not_answer() -> None:
    for call in CALLS:
        with pytest.raises(RedisUnavailable):
            call()
