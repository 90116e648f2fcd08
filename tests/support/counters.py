"""Store counts of the past, and read what is stored of a counter."""

from redis import Redis

from components.kit.keyspace import bucket
from components.services.counters import Counter
from components.services.counters.keys import CounterKeys
from components.services.counters.precisions import WINDOW, plan


def seconds(redis: Redis) -> int:
    """Return the server's time in seconds."""
    return int(redis.time()[0])  # type: ignore[index]


def samples_key(name: str, precision: int, at: int) -> str:
    """Return the key of the slot of a stored precision that contains the second *at*."""
    return f"{CounterKeys(bucket(name)).samples}:{name}/{precision}:{at // precision // WINDOW}"


def count_at(redis: Redis, name: str, at: int, count: int = 1) -> None:
    """Store what an update at the second *at* would have stored."""
    for precision, kept in plan().kept.items():
        key = samples_key(name, precision, at)
        redis.hincrby(key, str(at // precision % WINDOW), count)
        redis.expireat(key, (at // precision // WINDOW + 1) * WINDOW * precision + kept)


def stored(redis: Redis, name: str) -> dict[int, int]:
    """Return the sum of all slots, for each stored precision."""
    sums = {}
    for precision in plan().kept:
        found = redis.keys(f"{CounterKeys(bucket(name)).samples}:{name}/{precision}:*")
        sums[precision] = sum(int(count) for key in found for count in redis.hvals(key))
    return sums


def this_minute(redis: Redis) -> int:
    """The second at which it began."""
    return seconds(redis) // 60 * 60


def counted(redis: Redis, name: str, *counts: int, now: int = 0, minute: int | None = None) -> int:
    """
    It counted *now* in this minute, and *counts* in those before it, the latest first. Returns the second at which
    this minute began: it may be over when a page is made. Counters that are compared are given the same one.
    """
    Counter(name).update(0)  # so that it is listed
    minute = this_minute(redis) if minute is None else minute
    for ago, count in enumerate([now, *counts]):
        count_at(redis, name, minute - ago * 60, count)
    return minute
