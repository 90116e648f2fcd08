"""Snapshots of all data of a server, for comparisons; also without what differs between two equal runs."""

import re
from typing import Any

from redis import Redis

_READ = {
    b"string": lambda redis, key: redis.get(key),
    b"hash": lambda redis, key: redis.hgetall(key),
    b"set": lambda redis, key: redis.smembers(key),
    b"zset": lambda redis, key: dict(redis.zrange(key, 0, -1, withscores=True)),
    b"list": lambda redis, key: redis.lrange(key, 0, -1),
    b"stream": lambda redis, key: (redis.xrange(key), _pending(redis, key)),
}
_ID = re.compile(r"[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}")
_WORKER = re.compile(r"[\w.-]+-\d+-[0-9a-f]{8}\b")
_RANDOM = re.compile(r"(?<=[/ ':])[0-9a-f]{16}\b")  # of permits, and of calls
# \d{3}.…: the rank of an entry of an address book, in half-lives since 1970; \d{10}.…: seconds and microseconds;
# released: hundreds of seconds
_INSTANT = re.compile(
    r"\b\d{3}\.\d{6,}|\b\d{10}\.\d{1,6}\b|(?<=:released:)\d{8}\b"
    r"|(?<![0-9a-f])\d{13,}(\.0|-\d+)?\b|datetime\.datetime\([\d, ]+, tzinfo=datetime\.timezone\.utc\)"
)


def _pending(redis: Redis, key: bytes) -> list[Any]:
    """Return for each group its claims: by whom, and how often they were handed out."""
    found = []
    for group in redis.xinfo_groups(key):
        for each in redis.xpending_range(key, group["name"], "-", "+", 1_000):
            found.append((group["name"], each["message_id"], each["consumer"], each["times_delivered"]))
    return found


def snapshot(redis: Redis) -> dict[bytes, Any]:
    """Return the value of each key, and whether it expires."""
    kinds = {key: redis.type(key) for key in sorted(redis.keys("*"))}
    return {
        key: (_READ[kind](redis, key), redis.ttl(key) > 0) for key, kind in kinds.items() if kind != b"none"
    }


def alike(found: Any) -> list[str]:
    """
    Return *found* as lines that are equal for equal runs: ids are numbered by age, instants and workers are words.
    """
    lines = [repr(line) for line in (_sorted(found) if isinstance(found, dict) else [found])]
    ids = sorted({task_id for line in lines for task_id in _ID.findall(line)})
    numbers = {task_id: f"id{number}" for number, task_id in enumerate(ids)}
    named = (_ID.sub(lambda match: numbers[match[0]], line) for line in lines)
    return sorted(
        _INSTANT.sub("instant", _RANDOM.sub("random", _WORKER.sub("worker", line))) for line in named
    )


def _sorted(found: Any) -> Any:
    match found:
        case dict():
            return [(key, _sorted(found[key])) for key in sorted(found)]
        case set():
            return sorted(found)
        case list() | tuple():
            return [_sorted(item) for item in found]
    return found
