"""
Keys of logs that are handed out in chunks. The entity is the job. (services/logs)

Jobs, aggregations and tables are named by those who run the commands and write callbacks, so there are few. What
grows with lines is bounded by the limit of bytes in flight, what grows with files by their greatest number, and what
grows with days by how many are kept.
"""

from __future__ import annotations

from components.kit.keyspace import _key


def log_stream(job: str) -> str:
    """STREAM of descriptors of chunks, with a group for each aggregation. An entry goes with its chunk. Stays."""
    return _key("logs", job, "stream")


def log_chunk(job: str, chunk: str) -> str:
    """STRING whole lines, compressed (in scripts a prefix of the id). Goes when each aggregation has counted it."""
    return _key("logs", job, f"chunk:{chunk}")


def log_counted(job: str) -> str:
    """HASH id of a chunk -> numbers of the aggregations that have counted it. A field goes with the chunk."""
    return _key("logs", job, "counted")


def log_aggregations(job: str) -> str:
    """HASH name of an aggregation -> its number, milliseconds of its lease. A field goes when it leaves."""
    return _key("logs", job, "aggregations")


def log_state(job: str) -> str:
    """
    HASH bytes and chunks in flight, limit of these bytes as the last producer said; lines and bytes (raw) ever
    copied, lines left out (skipped); aggregations ever joined. Stays.
    """
    return _key("logs", job, "state")


def log_files(job: str) -> str:
    """
    HASH fingerprint of a file -> how far it is copied. Stays, so that it is not copied again, until forgotten; at
    most a million, after which no new file is copied.
    """
    return _key("logs", job, "files")


def log_seen(job: str) -> str:
    """ZSET fingerprint of a file by the millisecond at which it was last looked at or copied. Goes with its file."""
    return _key("logs", job, "seen")


def log_heads(job: str) -> str:
    """SET of how many bytes fingerprints were made of, from 1 to 4,096. Stays."""
    return _key("logs", job, "heads")


def log_room(job: str) -> str:
    """LIST of at most one token that wakes a producer when there is room; it says "look", and carries no data."""
    return _key("logs", job, "room")


def log_call(job: str, consumer: str) -> str:
    """LIST the last claim of a consumer, and what it was answered, if it asks again. Expires after a minute."""
    return _key("logs", job, f"call:{consumer}")


def log_flushed(job: str, consumer: str) -> str:
    """STRING the last batch that a consumer has flushed, if it asks again. Expires after an hour."""
    return _key("logs", job, f"flushed:{consumer}")


def log_dead(job: str) -> str:
    """ZSET id of a chunk, blank, aggregation by the millisecond it was given up. Goes when it is sent again."""
    return _key("logs", job, "dead")


def log_table(job: str, table: str) -> str:
    """
    HASH member -> count, such as countries of a day (in scripts a prefix of its name). Goes when its day is not kept
    any more, or when it is dropped.
    """
    return _key("logs", job, f"table:{table}")


def log_samples(job: str, aggregation: str) -> str:
    """
    ZSET JSON of a rejected line by the millisecond it was rejected. At most a hundred, the newest. Goes when the
    aggregation leaves.
    """
    return _key("logs", job, f"samples:{aggregation}")


def log_worker(job: str, consumer: str) -> str:
    """STRING JSON, what a worker says of itself. Expires some seconds after it said so last."""
    return _key("logs", job, f"worker:{consumer}")


def log_jobs(tag: str) -> str:
    """SET of jobs that ever had a producer or an aggregation. Stays."""
    return _key("logs", tag, "jobs")
