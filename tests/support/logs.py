"""Helpers for tests of logs: lines, chunks, and leases that are over."""

from collections.abc import Iterable, Sequence
from typing import Any

from redis import Redis

from components.kit.client import get_client
from components.services.logs import Aggregation, Block, Chunk, Consumer, LogStream
from components.services.logs.keys import JobKeys

FILE = "4:file"  # a fingerprint


def lines(first: int, count: int = 10) -> bytes:
    """Return different lines in the book's format."""
    return b"".join(
        b"10.%d.%d.%d 2011-10-10 13:55:36 achievement-%d\n" % (n >> 16 & 255, n >> 8 & 255, n & 255, n)
        for n in range(first, first + count)
    )


def blocks(count: int, *, lines_each: int = 10) -> list[Block]:
    found: list[Block] = []
    end = 0
    for number in range(count):
        data = lines(number * lines_each, lines_each)
        found.append(Block(data, end, end, number * lines_each + 1, lines_each, "-"))
        end += len(data)
    return found


def stream(limit: int = 1_000_000, *, job: str = "default") -> LogStream:
    found = LogStream(job, limit=limit)
    get_client().hsetnx(JobKeys(job).files, FILE, "0 0 - 0 - new 0 access.log")
    get_client().sadd(JobKeys(job).heads, 4)
    return found


def append(to: LogStream, number: int, **options: Any) -> str:
    """Append the block with this number, and return the id of the chunk."""
    return to.append(FILE, blocks(number + 1)[number], name="access.log", **options)


def fill(to: LogStream, count: int) -> list[str]:
    return [append(to, number) for number in range(count)]


def joined(name: str = "geo", **options: Any) -> Aggregation:
    found = Aggregation(name, **options)
    found.join()
    return found


def ids(chunks: Iterable[Chunk]) -> list[str]:
    return [each.id for each in chunks]


def let_leases_pass(redis: Redis, aggregation: Aggregation, only: Sequence[str] = ()) -> None:
    """End the leases of all claimed chunks, or *only* of these."""
    key, lease = JobKeys(aggregation.job).stream, round(aggregation.lease * 1000)
    for pending in redis.xpending_range(key, aggregation.name, "-", "+", 1_000):
        if not only or pending["message_id"].decode() in only:
            redis.xclaim(
                key,
                aggregation.name,
                pending["consumer"],
                0,
                [pending["message_id"]],
                idle=lease + 1,
                retrycount=pending["times_delivered"],
                justid=True,
            )


def count_all(consumer: Consumer) -> int:
    """Count the lines of all chunks as an aggregation does, and return the number of chunks."""
    done = 0
    while chunks := consumer.claim():
        total = sum(consumer.read(each).count(b"\n") for each in chunks)
        consumer.flush(chunks, {"lines": {"all": total}})
        done += len(chunks)
    return done


def bytes_in_flight(redis: Redis, job: str = "default") -> int:
    """Return the bytes of all stored chunks, whatever the counter says."""
    return sum(redis.strlen(key) for key in redis.keys(f"*:logs:{{{job}}}:chunk:*"))
