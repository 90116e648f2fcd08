"""The scripts of logs, each with what is done while its reply gets lost. (tests/kit/test_lost_replies.py)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import ChunksLost, CopiedElsewhere, LogsFull
from components.services.logs import Aggregation, Block, Place, Sample
from components.services.logs.keys import JobKeys
from tests.support.logs import FILE, append, blocks, bytes_in_flight, fill, joined, let_leases_pass, stream


def _stream_is(redis: Redis) -> Any:
    """Return what is in flight, without ids, which are instants."""
    return stream().status(), bytes_in_flight(redis)


def recognise(redis: Redis) -> Callable[[], Any]:
    return lambda: stream().recognise(b"a line\n", "access.log")


def append_chunk(redis: Redis) -> Callable[[], Any]:
    append(stream(), 0)

    def act() -> Any:
        append(stream(), 1)
        return _stream_is(redis)

    return act


def append_after_a_line_that_was_left_out(redis: Redis) -> Callable[[], Any]:
    append(stream(), 0)
    block = blocks(2)[1]
    later = Block(block.data, block.after, block.start + 5_000, block.line + 2, block.lines, block.mark)

    def act() -> Any:
        stream().append(FILE, later, name="access.log")
        assert stream().status().skipped == 2
        return _stream_is(redis)

    return act


def append_without_room(redis: Redis) -> Callable[[], Any]:
    append(stream(), 0)

    def act() -> Any:
        with pytest.raises(LogsFull):
            append(stream(200), 1, wait=0)

    return act


def append_elsewhere(redis: Redis) -> Callable[[], Any]:
    def act() -> Any:
        with pytest.raises(CopiedElsewhere):
            append(stream(), 1)

    return act


def finish(redis: Redis) -> Callable[[], Any]:
    """Finish a file from which lines were left out."""
    place = Place(500, 11, "-")

    def act() -> Any:
        stream().finish(FILE, place, after=0, name="access.log", size=500, state="damaged")
        assert stream().status().skipped == 11
        return _stream_is(redis)

    return act


def join(redis: Redis) -> Callable[[], Any]:
    fill(stream(), 2)
    return Aggregation("geo").join


def claim(redis: Redis) -> Callable[[], Any]:
    """Claim new chunks, one whose lease is over, and one that is given up."""
    fill(stream(), 4)
    aggregation = joined(tries=2)
    consumer = aggregation.consumer()
    given_up, taken = consumer.claim(2)
    let_leases_pass(redis, aggregation, [given_up.id])
    aggregation.consumer().claim(1)
    let_leases_pass(redis, aggregation, [given_up.id, taken.id])
    other = aggregation.consumer()

    def act() -> Any:
        found = other.claim(3)
        return [(each.start, each.tries) for each in found]

    return act


def beat(redis: Redis) -> Callable[[], Any]:
    fill(stream(), 2)
    aggregation = joined()
    consumer = aggregation.consumer()
    lost, _kept = consumer.claim(2)
    let_leases_pass(redis, aggregation, [lost.id])
    aggregation.consumer().claim(1)
    return lambda: len(consumer.beat())


def release(redis: Redis) -> Callable[[], Any]:
    fill(stream(), 2)
    consumer = joined().consumer()
    consumer.claim(2)
    return consumer.release


def flush(redis: Redis) -> Callable[[], Any]:
    """One chunk that another aggregation needs as well, and one that goes."""
    fill(stream(), 2)
    aggregation, other = joined(), joined("other")
    consumer, before = aggregation.consumer(), other.consumer()
    before.flush(before.claim(1), {})
    chunks = consumer.claim(2)
    return lambda: consumer.flush(chunks, {"country:2011-10-10": {"US": 3, "DE": 1}})


def flush_values(redis: Redis) -> Callable[[], Any]:
    fill(stream(), 1)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim(1)
    table = "values:path:served:2011-10-10"

    def act() -> Any:
        consumer.flush(chunks, {table: {f"*/200//{number}": 2 for number in range(1_003)}})
        return aggregation.table(table), aggregation.table(f"{table}:*")

    return act


def flush_too_late(redis: Redis) -> Callable[[], Any]:
    fill(stream(), 2)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim(2)
    let_leases_pass(redis, aggregation, [chunks[0].id])
    aggregation.consumer().claim(1)

    def act() -> Any:
        with pytest.raises(ChunksLost):
            consumer.flush(chunks, {"country:2011-10-10": {"US": 3}})

    return act


def leave(redis: Redis) -> Callable[[], Any]:
    fill(stream(), 2)
    aggregation, other = joined(), joined("other")
    consumer = other.consumer()
    consumer.flush(consumer.claim(1), {})
    return aggregation.leave


def resend(redis: Redis) -> Callable[[], Any]:
    fill(stream(), 1)
    aggregation = joined(tries=1)
    aggregation.consumer().claim()
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim()
    [(chunk, _at)] = aggregation.dead()
    return lambda: aggregation.resend([chunk])


def discard(redis: Redis) -> Callable[[], Any]:
    """One chunk that another aggregation needs as well, and one that goes."""
    fill(stream(), 2)
    aggregation, other = joined(tries=1), joined("other")
    consumer = other.consumer()
    consumer.flush(consumer.claim(1), {})
    aggregation.consumer().claim()
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim()
    chunks = [chunk for chunk, _at in aggregation.dead()]

    def act() -> None:
        aggregation.discard(chunks)  # its count is that of the last sending

    return act


def forget(redis: Redis) -> Callable[[], Any]:
    append(stream(), 0)
    stream().recognise(b"a line\n", "other.log")
    redis.zadd(JobKeys("default").seen, {FILE: 1})

    def act() -> Any:
        stream().forget(60)  # its count is that of the last sending
        return [each.name for each in stream().files()]

    return act


def sample(redis: Redis) -> Callable[[], Any]:
    consumer = joined().consumer()
    return lambda: consumer.sample([Sample("date", "a.log", 3, 80, "1.2.3.4 2011-02-30")])


CASES = {
    "logs/forget": [forget],
    "logs/discard": [discard],
    "logs/append": [
        append_chunk,
        append_after_a_line_that_was_left_out,
        append_without_room,
        append_elsewhere,
    ],
    "logs/beat": [beat],
    "logs/claim": [claim],
    "logs/finish": [finish],
    "logs/flush": [flush, flush_values, flush_too_late],
    "logs/join": [join],
    "logs/leave": [leave],
    "logs/recognise": [recognise],
    "logs/release": [release],
    "logs/resend": [resend],
    "logs/sample": [sample],
}
