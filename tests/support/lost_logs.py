"""The scripts of logs, each with what is done when its calls are repeated."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from components.exceptions import ChunksLost, CopiedElsewhere, LogsFull
from components.services.logs import Aggregation, Block, Place, Sample
from components.services.logs.keys import JobKeys
from tests.support.logs import FILE, append, blocks, fill, joined, let_leases_pass, stream
from tests.support.repeating import Act, cases

case = cases("logs")


@case
def recognise(redis: Redis) -> Act:
    return lambda: stream().recognise(b"a line\n", "access.log")


@case
def append_chunk(redis: Redis) -> Act:
    append(stream(), 0)
    return lambda: append(stream(), 1)


@case
def append_after_a_line_that_was_left_out(redis: Redis) -> Act:
    append(stream(), 0)
    block = blocks(2)[1]
    later = Block(block.data, block.after, block.start + 5_000, block.line + 2, block.lines, block.mark)

    def act() -> Any:
        stream().append(FILE, later, name="access.log")
        assert stream().status().skipped == 2

    return act


@case
def append_without_room(redis: Redis) -> Act:
    append(stream(), 0)

    def act() -> Any:
        with pytest.raises(LogsFull):
            append(stream(200), 1, wait=0)

    return act


@case
def append_elsewhere(redis: Redis) -> Act:
    def act() -> Any:
        with pytest.raises(CopiedElsewhere):
            append(stream(), 1)

    return act


@case
def finish(redis: Redis) -> Act:
    """Finish a file from which lines were left out."""
    place = Place(500, 11, "-")

    def act() -> Any:
        stream().finish(FILE, place, after=0, name="access.log", size=500, state="damaged")
        assert stream().status().skipped == 11

    return act


@case
def join(redis: Redis) -> Act:
    fill(stream(), 2)
    return Aggregation("geo").join


@case
def claim(redis: Redis) -> Act:
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


@case
def beat(redis: Redis) -> Act:
    fill(stream(), 2)
    aggregation = joined()
    consumer = aggregation.consumer()
    lost, _kept = consumer.claim(2)
    let_leases_pass(redis, aggregation, [lost.id])
    aggregation.consumer().claim(1)
    return lambda: len(consumer.beat())


@case
def release(redis: Redis) -> Act:
    fill(stream(), 2)
    consumer = joined().consumer()
    consumer.claim(2)
    return consumer.release


@case
def flush(redis: Redis) -> Act:
    """One chunk that another aggregation needs as well, and one that goes."""
    fill(stream(), 2)
    aggregation, other = joined(), joined("other")
    consumer, before = aggregation.consumer(), other.consumer()
    before.flush(before.claim(1), {})
    chunks = consumer.claim(2)
    return lambda: consumer.flush(chunks, {"country:2011-10-10": {"US": 3, "DE": 1}})


@case
def flush_values(redis: Redis) -> Act:
    fill(stream(), 1)
    aggregation = joined()
    consumer = aggregation.consumer()
    chunks = consumer.claim(1)
    table = "values:path:served:2011-10-10"

    def act() -> Any:
        consumer.flush(chunks, {table: {f"*/200//{number}": 2 for number in range(1_003)}})
        return aggregation.table(table), aggregation.table(f"{table}:*")

    return act


@case
def flush_too_late(redis: Redis) -> Act:
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


@case
def leave(redis: Redis) -> Act:
    fill(stream(), 2)
    aggregation, other = joined(), joined("other")
    consumer = other.consumer()
    consumer.flush(consumer.claim(1), {})
    return aggregation.leave


@case
def resend(redis: Redis) -> Act:
    fill(stream(), 1)
    aggregation = joined(tries=1)
    aggregation.consumer().claim()
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim()
    [(chunk, _at)] = aggregation.dead()
    return lambda: aggregation.resend([chunk])


@case
def discard(redis: Redis) -> Act:
    """One chunk that another aggregation needs as well, and one that goes."""
    fill(stream(), 2)
    aggregation, other = joined(tries=1), joined("other")
    consumer = other.consumer()
    consumer.flush(consumer.claim(1), {})
    aggregation.consumer().claim()
    let_leases_pass(redis, aggregation)
    aggregation.consumer().claim()
    chunks = [chunk for chunk, _at in aggregation.dead()]
    return lambda: aggregation.discard(chunks)


@case
def forget(redis: Redis) -> Act:
    append(stream(), 0)
    stream().recognise(b"a line\n", "other.log")
    redis.zadd(JobKeys("default").seen, {FILE: 1})

    def act() -> Any:
        stream().forget(60)  # its count is that of the last sending
        return [each.name for each in stream().files()]

    return act


@case
def sample(redis: Redis) -> Act:
    consumer = joined().consumer()
    return lambda: consumer.sample([Sample("date", "a.log", 3, 80, "1.2.3.4 2011-02-30")])
