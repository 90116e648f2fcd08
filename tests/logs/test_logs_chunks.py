"""Chunks of logs: appended within a limit, claimed, counted exactly once, whoever dies."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from redis import Redis

from components.exceptions import (
    AggregationNotFound,
    ChunkNotFound,
    ChunksLost,
    ChunkTooLarge,
    CopiedElsewhere,
    InvalidName,
    InvalidValue,
    LogsFull,
    UnknownFormat,
)
from components.kit.client import get_client
from components.services.logs import Aggregation, LogStream
from components.services.logs.keys import JobKeys
from tests.support.logs import (
    append,
    blocks,
    bytes_in_flight,
    count_all,
    fill,
    ids,
    joined,
    let_leases_pass,
    stream,
)
from tests.support.waiting import eventually

TABLES = {"country:2011-10-10": {"US": 3, "DE": 1}}


def room_for(chunks: int) -> int:
    """A limit that so many chunks fit in, and no more."""
    with_room = stream(job="measured")
    append(with_room, 0)
    return round(with_room.status().bytes * (chunks + 0.5))


def test_a_chunk_is_claimed_as_it_was_appended(redis: Redis) -> None:
    fill(stream(), 2)

    consumer = joined().consumer()
    first, second = consumer.claim()

    assert consumer.read(second) == blocks(2)[1].data
    assert (second.file, second.start, second.end) == ("access.log", first.end, blocks(2)[1].end)
    assert (second.line, second.lines, second.tries) == (11, 10, 1)


def test_chunks_wait_for_the_first_aggregation_and_go_when_all_have_counted_them(redis: Redis) -> None:
    fill(stream(), 3)
    joined("one").leave()
    one, other = joined("one").consumer(), joined("other").consumer()

    assert count_all(one) == 3
    assert stream().status().chunks == 3
    late = joined("late").consumer()
    other.flush(other.claim(2), {})
    late.flush(late.claim(1), {})
    assert (count_all(other), count_all(late)) == (1, 2)

    status = stream().status()
    assert (status.chunks, status.bytes, status.lines, status.raw_bytes) == (0, 0, 30, blocks(3)[2].end)
    assert redis.keys("*:chunk:*") == redis.keys("*:counted") == []


def test_a_chunk_that_does_not_go_on_where_the_last_ended_is_refused(redis: Redis) -> None:
    append(stream(), 0)

    with pytest.raises(CopiedElsewhere, match=f"up to byte {blocks(1)[0].end}"):
        append(stream(), 2)
    append(stream(), 0)  # another producer of the file stores it once
    assert stream().status().chunks == 1


def test_what_is_refused_for_lack_of_room_leaves_nothing(redis: Redis) -> None:
    limit = room_for(2)
    append(stream(limit), 0)
    append(LogStream("default", limit=limit), 1)
    redis.delete(JobKeys("default").room)
    before = {key: redis.dump(key) for key in redis.keys("*{default}*")}

    with pytest.raises(LogsFull):
        append(stream(limit), 2, wait=0)

    assert {key: redis.dump(key) for key in redis.keys("*{default}*")} == before
    assert bytes_in_flight(redis) == stream().status().bytes <= limit


def test_a_producer_that_waits_is_woken_when_a_chunk_is_counted(redis: Redis) -> None:
    limit = room_for(1)
    to, consumer = stream(limit), joined().consumer()
    append(to, 0)
    [chunk] = consumer.claim()
    redis.delete(JobKeys("default").room)
    appended = threading.Event()
    producer = threading.Thread(target=lambda: (append(to, 1), appended.set()))
    producer.start()
    assert eventually(lambda: get_client().info("clients")["blocked_clients"] == 1)

    consumer.flush([chunk], {})

    assert appended.wait(3)  # it looks by itself only after four
    producer.join()


def test_one_who_found_room_wakes_the_next(redis: Redis) -> None:
    to = stream(room_for(5))

    append(to, 0)

    assert redis.lrange(JobKeys("default").room, 0, -1) == [b"1"]


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda: append(stream(10), 0), ChunkTooLarge),
        *((lambda limit=limit: LogStream(limit=limit), InvalidValue) for limit in (0, -1, 1.5, True, "1")),
        (lambda: LogStream(""), InvalidName),
        (lambda: Aggregation(""), InvalidName),
        (lambda: Aggregation("geo", lease=0), InvalidValue),
        (lambda: Aggregation("geo", tries=0), InvalidValue),
        *((lambda limit=limit: joined().consumer().claim(limit), InvalidValue) for limit in (0, 501)),
        *(
            (lambda count=count: flush_count(count), InvalidValue)
            for count in (1.5, True, "3", 2**53, -(2**53))
        ),
    ],
)
def test_what_cannot_be_is_refused(redis: Redis, act: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        act()


def flush_count(count: object) -> None:
    fill(stream(), 1)
    consumer = joined().consumer()
    consumer.flush(consumer.claim(), {"lines": {"all": count}})  # type: ignore[dict-item]


def test_chunks_needed_only_by_an_aggregation_that_left_are_removed(redis: Redis) -> None:
    fill(stream(), 3)
    leaving, other = joined("leaving"), joined("other").consumer()
    other.flush(other.claim(2), {})

    leaving.leave()
    leaving.leave()

    assert stream().status().chunks == 1
    assert bytes_in_flight(redis) == stream().status().bytes
    with pytest.raises(AggregationNotFound, match="'leaving'"):
        leaving.consumer().claim()
    leaving.join()
    assert len(leaving.consumer().claim()) == 1  # joins again, and counts anew what is there


def test_chunks_of_a_consumer_that_died_go_to_another(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation = joined()
    dead = ids(aggregation.consumer().claim())
    living = aggregation.consumer()
    assert living.claim() == []

    let_leases_pass(redis, aggregation)
    taken = living.claim()

    assert ids(taken) == dead
    assert [each.tries for each in taken] == [2, 2]
    names = [each["name"].decode() for each in redis.xinfo_consumers(JobKeys("default").stream, "geo")]
    assert names == [living.id]


def test_a_worker_that_beats_keeps_its_chunks(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim()
    let_leases_pass(redis, aggregation)

    assert consumer.beat() == frozenset()
    assert aggregation.consumer().claim() == []
    assert consumer.held.keys() == {each.id for each in chunks}
    let_leases_pass(redis, aggregation, [chunks[0].id])
    other = aggregation.consumer()
    other.claim()
    assert consumer.beat() == {chunks[0].id}
    assert consumer.held.keys() == {chunks[1].id}
    for each in (consumer, other):
        each.release()
        assert each.held == {}
    again = aggregation.consumer().claim()
    assert sorted(each.tries for each in again) == [1, 2]  # what was given back was no try


def test_a_late_flush_is_refused_as_a_whole(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation = joined()
    late, other = aggregation.consumer(), aggregation.consumer()
    chunks = late.claim()
    let_leases_pass(redis, aggregation, [chunks[0].id])
    taken = other.claim()

    with pytest.raises(ChunksLost, match="1 of 2 chunks are no longer held") as refused:
        late.flush(chunks, TABLES)

    assert refused.value.lost == {chunks[0].id}
    assert aggregation.table("country:2011-10-10") == {}
    other.flush(taken, TABLES)
    late.flush(chunks[1:], TABLES)
    assert aggregation.table("country:2011-10-10") == {"US": 6, "DE": 2}
    assert stream().status().chunks == 0


def test_a_flush_that_is_sent_again_adds_nothing(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim()
    consumer.flush(chunks, TABLES)

    consumer.flush(chunks, TABLES)

    assert aggregation.table("country:2011-10-10") == {"US": 3, "DE": 1}


def test_a_worker_that_claims_what_it_holds_gets_what_comes_after(redis: Redis) -> None:
    """Nothing means that nothing is left, and not that all of a page was known."""
    to, aggregation = stream(), joined()
    appended = fill(to, 4)
    consumer = aggregation.consumer()
    held = consumer.claim(2)
    let_leases_pass(redis, aggregation)

    assert ids(consumer.claim(2)) == appended[2:]
    assert consumer.claim(2) == []
    consumer.flush([*held, *(consumer.held[each] for each in appended[2:])], {})
    assert to.status().chunks == 0


def test_an_abandoned_request_does_not_hide_the_next(redis: Redis) -> None:
    to, aggregation = stream(), joined(tries=2)
    appended = fill(to, 3)
    for count in (3, 2):
        aggregation.consumer().claim(count)
        let_leases_pass(redis, aggregation)
    consumer = aggregation.consumer()

    assert ids(consumer.claim(2)) == appended[2:]
    assert sorted(each for each, _at in aggregation.dead()) == appended[:2]
    assert consumer.claim(2) == []


def test_a_chunk_lost_and_claimed_again_is_in_a_flush_once(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim()
    let_leases_pass(redis, aggregation, [chunks[0].id])
    aggregation.consumer().claim()
    consumer.beat()
    let_leases_pass(redis, aggregation, [chunks[0].id])
    [anew] = consumer.claim()

    with pytest.raises(ChunksLost) as refused:
        consumer.flush([*chunks, anew], TABLES)

    assert anew.id == chunks[0].id
    assert refused.value.lost == {anew.id}
    assert consumer.held.keys() == {chunks[1].id}
    assert aggregation.table("country:2011-10-10") == {}


def test_a_flush_into_what_is_no_table_changes_nothing(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined()
    consumer = aggregation.consumer()
    redis.set(JobKeys("default").counts("region:2011-10-10"), "mine")
    chunks = consumer.claim()

    with pytest.raises(Exception, match="WRONGTYPE"):
        consumer.flush(chunks, {**TABLES, "region:2011-10-10": {"BE": 1}})

    assert aggregation.table("country:2011-10-10") == {}
    assert stream().status().chunks == 1


def test_a_chunk_under_which_consumers_died_is_given_up_and_can_be_sent_again(redis: Redis) -> None:
    [poison, _other] = fill(stream(), 2)
    aggregation = joined(tries=2)
    for _ in range(2):
        aggregation.consumer().claim(1)
        let_leases_pass(redis, aggregation)
    consumer = aggregation.consumer()

    assert poison not in ids(consumer.claim())
    assert [each for each, _at in aggregation.dead()] == [poison]
    assert Aggregation("else").dead() == []
    assert aggregation.resend([poison, "1-1"]) == 1
    [again] = consumer.claim()
    assert (again.id, again.tries) == (poison, 1)
    assert aggregation.dead() == []


def test_a_chunk_that_was_given_up_can_be_discarded(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation, other = joined(tries=1), joined("other")
    aggregation.consumer().claim()
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim()
    [first, second] = [each for each, _at in aggregation.dead()]
    redis.delete(JobKeys("default").chunk(second))  # evicted
    redis.hset(JobKeys("default").state, "bytes", bytes_in_flight(redis))
    consumer = other.consumer()
    consumer.flush([each for each in consumer.claim() if each.id == first], {})

    assert aggregation.discard([first, second, "1-1"]) == 2

    assert aggregation.dead() == []
    assert stream().status().chunks == 1
    assert bytes_in_flight(redis) == stream().status().bytes
    consumer.flush(consumer.held.values(), {})
    assert stream().status() == replace(stream().status(), bytes=0, chunks=0)


def test_a_waiting_worker_hears_of_a_new_chunk(redis: Redis) -> None:
    aggregation = joined()
    consumer = aggregation.consumer()
    assert consumer.claim() == []
    assert not consumer.wait(0.01)

    append(stream(), 0)

    assert consumer.wait(3)
    assert len(consumer.claim()) == 1
    assert not consumer.wait(0.01)


def test_lines_that_are_gone_or_of_a_later_release_are_reported(redis: Redis) -> None:
    fill(stream(), 1)
    consumer = joined().consumer()
    [chunk] = consumer.claim()
    redis.set(JobKeys("default").chunk(chunk.id), b"\x00newer")

    with pytest.raises(UnknownFormat):
        consumer.read(chunk)
    redis.delete(JobKeys("default").chunk(chunk.id))
    with pytest.raises(ChunkNotFound, match=r"access\.log, from byte 0"):
        consumer.read(chunk)
