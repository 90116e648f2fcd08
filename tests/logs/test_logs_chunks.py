"""Chunks of logs: appended within a limit, claimed, counted exactly once, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
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
    FILE,
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


def test_chunks_wait_for_the_first_aggregation(redis: Redis) -> None:
    fill(stream(), 3)

    assert count_all(joined().consumer()) == 3
    assert stream().status().bytes == 0
    assert redis.keys("*:chunk:*") == []


def test_appended_chunks_are_reported_even_when_they_are_gone(redis: Redis) -> None:
    fill(stream(), 2)
    count_all(joined().consumer())

    status = stream().status()

    assert (status.chunks, status.lines, status.raw_bytes) == (0, 20, blocks(2)[1].end)


def test_a_chunk_that_does_not_go_on_where_the_last_ended_is_refused(redis: Redis) -> None:
    append(stream(), 0)

    with pytest.raises(CopiedElsewhere, match=f"up to byte {blocks(1)[0].end}"):
        append(stream(), 2)
    assert stream().status().chunks == 1


def test_two_producers_of_one_file_store_each_chunk_once(redis: Redis) -> None:
    one, other = stream(), stream()

    assert append(one, 0) == append(other, 0)
    assert stream().status().chunks == 1


def test_no_more_bytes_are_in_flight_than_the_limit_however_many_append(redis: Redis) -> None:
    limit = room_for(2)
    first, second = stream(limit), LogStream("default", limit=limit)
    append(first, 0)
    append(second, 1)

    with pytest.raises(LogsFull, match="which is the limit"):
        append(first, 2, wait=0)

    assert stream().status().chunks == 2
    assert bytes_in_flight(redis) == stream().status().bytes <= limit


def test_a_request_refused_for_lack_of_room_left_nothing(redis: Redis) -> None:
    limit = room_for(1)
    append(stream(limit), 0)
    redis.delete(JobKeys("default").room)
    before = {key: redis.dump(key) for key in redis.keys("*{default}*")}

    with pytest.raises(LogsFull):
        append(stream(limit), 1, wait=0)

    assert {key: redis.dump(key) for key in redis.keys("*{default}*")} == before


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


def test_a_chunk_that_could_never_be_in_flight_is_refused(redis: Redis) -> None:
    with pytest.raises(ChunkTooLarge, match="only 10 may be in flight"):
        append(stream(10), 0)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "1"])
def test_a_limit_is_a_whole_number_of_bytes(redis: Redis, limit: object) -> None:
    with pytest.raises(InvalidValue):
        LogStream(limit=limit)  # type: ignore[arg-type]


def test_a_job_needs_a_name(redis: Redis) -> None:
    with pytest.raises(InvalidName):
        LogStream("")


def test_jobs_do_not_meet(redis: Redis) -> None:
    append(stream(job="one"), 0)

    assert joined(job="other").consumer().claim() == []


def test_a_chunk_goes_when_all_aggregations_have_counted_it(redis: Redis) -> None:
    fill(stream(), 1)
    one, other = joined("one").consumer(), joined("other").consumer()

    one.flush(one.claim(), {})
    assert stream().status().chunks == 1
    other.flush(other.claim(), {})

    assert stream().status().chunks == 0
    assert redis.keys("*:counted") == []


def test_an_aggregation_that_comes_later_gets_what_is_there(redis: Redis) -> None:
    fill(stream(), 2)
    first, slow = joined("first").consumer(), joined("slow").consumer()
    first.flush(first.claim(), {})
    slow.flush(slow.claim(1), {})

    late = joined("late").consumer()

    assert len(late.claim()) == 1


def test_chunks_needed_only_by_an_aggregation_that_left_are_removed(redis: Redis) -> None:
    fill(stream(), 3)
    leaving, other = joined("leaving"), joined("other").consumer()
    other.flush(other.claim(2), {})

    leaving.leave()

    assert stream().status().chunks == 1
    assert bytes_in_flight(redis) == stream().status().bytes
    with pytest.raises(AggregationNotFound, match="'leaving'"):
        leaving.consumer().claim()


def test_uncounted_chunks_stay_when_the_last_aggregation_leaves(redis: Redis) -> None:
    fill(stream(), 2)
    joined().leave()

    assert count_all(joined().consumer()) == 2


def test_an_aggregation_that_joins_again_counts_anew_what_is_there(redis: Redis) -> None:
    fill(stream(), 1)
    again = joined("again")
    joined("other")
    consumer = again.consumer()
    consumer.flush(consumer.claim(), {})
    again.leave()
    again.join()

    assert len(again.consumer().claim()) == 1


def test_consumers_of_one_aggregation_share_the_chunks(redis: Redis) -> None:
    fill(stream(), 4)
    aggregation = joined()

    one, other = aggregation.consumer().claim(2), aggregation.consumer().claim(9)

    assert len({*ids(one), *ids(other)}) == 4


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


def test_a_beat_tells_what_is_lost(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation = joined()
    consumer = aggregation.consumer()
    lost, kept = consumer.claim()
    let_leases_pass(redis, aggregation, [lost.id])
    aggregation.consumer().claim()

    assert consumer.beat() == {lost.id}
    assert consumer.held.keys() == {kept.id}


def test_sums_and_chunks_are_handed_in_together(redis: Redis) -> None:
    fill(stream(), 2)
    aggregation = joined()
    consumer = aggregation.consumer()

    consumer.flush(consumer.claim(1), TABLES)
    consumer.flush(consumer.claim(1), TABLES)

    assert aggregation.table("country:2011-10-10") == {"US": 6, "DE": 2}
    assert consumer.held == {}


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


def test_a_flush_after_another_has_counted_all_adds_nothing(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined()
    late, other = aggregation.consumer(), aggregation.consumer()
    chunks = late.claim()
    let_leases_pass(redis, aggregation)
    other.flush(other.claim(), TABLES)

    with pytest.raises(ChunksLost):
        late.flush(chunks, TABLES)

    assert aggregation.table("country:2011-10-10") == {"US": 3, "DE": 1}


def test_a_flush_that_is_sent_again_adds_nothing(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim()
    consumer.flush(chunks, TABLES)

    consumer.flush(chunks, TABLES)

    assert aggregation.table("country:2011-10-10") == {"US": 3, "DE": 1}


def test_a_worker_that_claims_a_lost_chunk_again_counts_it_once(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim()
    let_leases_pass(redis, aggregation)

    assert consumer.claim() == []
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


@pytest.mark.parametrize("count", [1.5, True, "3", 2**53])
def test_counts_are_whole_numbers(redis: Redis, count: object) -> None:
    fill(stream(), 1)
    consumer = joined().consumer()

    with pytest.raises(InvalidValue):
        consumer.flush(consumer.claim(), {"lines": {"all": count}})  # type: ignore[dict-item]


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
    consumer = other.consumer()
    consumer.flush([each for each in consumer.claim() if each.id == first], {})

    assert aggregation.discard([first, second, "1-1"]) == 2

    assert aggregation.dead() == []
    assert stream().status().chunks == 1
    assert bytes_in_flight(redis) == stream().status().bytes
    consumer.flush(consumer.held.values(), {})
    assert stream().status() == replace(stream().status(), bytes=0, chunks=0)


def test_a_dead_chunk_whose_lines_redis_has_evicted_can_be_discarded(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined(tries=1)
    aggregation.consumer().claim()
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim()
    [(chunk, _at)] = aggregation.dead()
    redis.delete(JobKeys("default").chunk(chunk))

    assert aggregation.discard([chunk]) == 1

    assert (aggregation.dead(), stream().status().chunks) == ([], 0)


def test_a_released_task_is_claimed_at_once_and_counts_no_attempt(redis: Redis) -> None:
    fill(stream(), 1)
    aggregation = joined()
    consumer = aggregation.consumer()
    consumer.claim()

    consumer.release()

    [chunk] = aggregation.consumer().claim()
    assert chunk.tries == 1
    assert consumer.held == {}


def test_a_waiting_worker_hears_of_a_new_chunk(redis: Redis) -> None:
    aggregation = joined()
    consumer = aggregation.consumer()
    assert consumer.claim() == []
    assert not consumer.wait(0.01)

    append(stream(), 0)

    assert consumer.wait(3)
    assert len(consumer.claim()) == 1
    assert not consumer.wait(0.01)


def test_lines_that_are_gone_are_reported(redis: Redis) -> None:
    fill(stream(), 1)
    consumer = joined().consumer()
    [chunk] = consumer.claim()
    redis.delete(*redis.keys("*:chunk:*"))

    with pytest.raises(ChunkNotFound, match=r"access\.log, from byte 0"):
        consumer.read(chunk)


def test_a_chunk_of_a_later_release_is_not_taken_for_lines(redis: Redis) -> None:
    fill(stream(), 1)
    consumer = joined().consumer()
    [chunk] = consumer.claim()
    redis.set(redis.keys("*:chunk:*")[0], b"\x00newer")

    with pytest.raises(UnknownFormat):
        consumer.read(chunk)


PRODUCER = """
import sys, django
from django.conf import settings
settings.configure(CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": sys.argv[1],
    "OPTIONS": {"CLIENT_CLASS": "components.cache." + sys.argv[2]}}})
django.setup()
from tests.support.logs import FILE, blocks, stream
to = stream()
done = 0
for block in blocks(400):
    to.append(FILE, block, name="access.log")
    done += 1
    if done == 50:
        print("copying", flush=True)
"""


@pytest.fixture
def producer(server: EmbeddedServer, redis_mode: str) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts processes that append a file of 400 chunks."""
    started: list[subprocess.Popen[bytes]] = []
    kind = "ClusterClient" if redis_mode == "cluster" else "Client"

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", PRODUCER, server.url, kind], stdout=subprocess.PIPE)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def test_a_producer_that_is_killed_leaves_whole_chunks_that_another_goes_on_after(
    redis: Redis, producer: Callable[[], subprocess.Popen[bytes]]
) -> None:
    process = producer()
    assert process.stdout
    assert process.stdout.readline() == b"copying\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    found = {key.rpartition(b":chunk:")[2] for key in redis.keys("*:chunk:*")}
    described = {each for each, _fields in redis.xrange(JobKeys("default").stream)}

    assert found == described
    assert stream().status().bytes == bytes_in_flight(redis)
    [record] = [each for each in stream().files() if each.fingerprint == FILE]
    for block in blocks(400)[len(found) :]:
        assert block.start >= record.place.position
        stream().append(FILE, block, name="access.log")
    aggregation = joined()
    assert count_all(aggregation.consumer()) == 400
    assert aggregation.table("lines") == {"all": 4_000}
