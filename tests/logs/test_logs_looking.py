"""Looking at jobs: what is in flight, who counts it, and how far behind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis import Redis

from components.exceptions import LogsFull
from components.services.logs import Aggregation, WorkerRecord, dead_chunks, list_jobs, look_at, note_job
from components.services.logs.jobs import MOST_WAITING
from components.services.logs.keys import JobKeys
from tests.support.logs import append, fill, joined, let_leases_pass, stream

SAID = WorkerRecord("node-1", 7, "2026-01-01T12:00:00+00:00", 1_000, 3, 250.5, "book", "city", "numba")


def give_up(redis: Redis, aggregation: Aggregation, count: int) -> None:
    """So many chunks are dead; they were tried once."""
    aggregation.consumer().claim(count)
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim(count)


def test_jobs_are_listed_from_their_first_producer_on(redis: Redis) -> None:
    assert list_jobs() == []

    stream(job="nightly").recognise(b"a line\n", "access.log")
    note_job("default")
    note_job("default")

    assert list_jobs() == ["default", "nightly"]


def test_an_unknown_job_has_no_data(redis: Redis) -> None:
    status = look_at("nowhere")

    assert not status.is_used
    assert (status.bytes, status.chunks, status.limit, status.oldest) == (0, 0, None, None)
    assert status.aggregations == []


def test_data_in_flight_is_shown_with_the_limit_of_the_last_producer(redis: Redis) -> None:
    append(stream(5_000), 0)
    append(stream(6_000), 1)

    before = {key: redis.dump(key) for key in redis.keys("*")}
    status = look_at("default")

    assert {key: redis.dump(key) for key in redis.keys("*")} == before
    assert status.is_used
    assert (status.bytes, status.chunks, status.lines) == (stream().status().bytes, 2, 20)
    assert (status.limit, status.raw_bytes) == (6_000, stream().status().raw_bytes)
    assert status.oldest is not None
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

    [status] = look_at("default").aggregations
    workers = {each.id: each for each in status.workers}

    assert set(workers) == {living.id, dying.id, idle.id}
    assert (workers[dying.id].record, workers[dying.id].pending) == (None, 2)
    assert (workers[living.id].record, workers[living.id].pending) == (SAID, 1)
    assert (workers[idle.id].record, workers[idle.id].pending) == (SAID, 0)
    assert [replace(each, idle=0) for each in status.workers] == [
        replace(each, idle=0) for each in aggregation.workers()
    ]


def test_an_abandoned_request_is_listed_and_neither_held_nor_waiting(redis: Redis) -> None:
    fill(stream(), 3)
    aggregation, other = joined(tries=1), joined("other", tries=1)
    give_up(redis, aggregation, 2)
    give_up(redis, other, 1)

    geo, others = look_at("default").aggregations

    assert (geo.dead, geo.claimed, geo.waiting, others.dead) == (2, 1, 0, 1)
    found = dead_chunks("default", "geo")
    assert sorted(each.id for each in found) == sorted(name for name, _at in aggregation.dead())
    assert {(each.file, each.line, each.lines) for each in found} == {
        ("access.log", 1, 10),
        ("access.log", 11, 10),
    }
    assert [each.at for each in found] == [at for _name, at in aggregation.dead()]
    redis.delete(JobKeys("default").stream)
    assert {(each.file, each.line, each.lines) for each in dead_chunks("default", "geo")} == {("", 0, 0)}


def test_a_chunk_that_is_handed_out_again_waits_and_is_held_by_nobody(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation = joined(tries=1)
    give_up(redis, aggregation, 2)
    aggregation.resend([name for name, _at in aggregation.dead()])

    [status] = look_at("default").aggregations
    assert (status.claimed, status.waiting, status.dead, status.workers) == (0, 2, 0, [])
    consumer = aggregation.consumer()
    consumer.claim()
    assert [each.id for each in look_at("default").aggregations[0].workers] == [consumer.id]
    for idle in (aggregation.consumer(), aggregation.consumer()):
        idle.claim()
        idle.release()
        idle.release()
    assert [each.id for each in look_at("default").aggregations[0].workers] == [consumer.id]


def test_chunks_that_wait_are_counted_up_to_a_bound(redis: Redis) -> None:
    pipe = redis.pipeline()
    for number in range(MOST_WAITING + 5):
        pipe.xadd(JobKeys("default").stream, {"file": "a", "line": number, "lines": 1})
    pipe.execute()
    joined()

    [status] = look_at("default").aggregations

    assert status.waiting == MOST_WAITING


def test_consumers_that_were_killed_long_ago_are_forgotten_when_others_join(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
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
