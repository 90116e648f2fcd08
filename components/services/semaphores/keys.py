"""The keys of semaphores. The entity is a bucket of semaphores, so that one index lists all of a bucket."""

from __future__ import annotations

from functools import lru_cache

from components.conf import conf
from components.kit.keyspace import Key, SharedKey, bucket, stem


class SemaphoreKeys:
    """The keys of the semaphore *name*, named as in the scripts."""

    _is_kept = True

    def __init__(self, name: str) -> None:
        self._stem, self._end = stem("semaphores", bucket(name)), f":{name}"

    @staticmethod
    def of(name: str) -> SemaphoreKeys:
        """Return the keys of a semaphore, from a cache."""
        return _made(conf().prefix, name)

    @classmethod
    def of_bucket(cls, tag: str) -> SemaphoreKeys:
        """Return the beginnings of the keys of all semaphores of a bucket; *names* is the key of its index."""
        keys = object.__new__(cls)
        keys._stem, keys._end = stem("semaphores", tag), ":"
        return keys

    holders = Key(
        "ZSET permit by the microsecond its lease ends. Goes on release or after that end. Expires after a month."
    )
    heavy = Key("ZSET permit by its weight, if that is above 1. Goes with the holder. Expires after a month.")
    since = Key("ZSET permit by the microsecond it was granted. Goes with the holder. Expires after a month.")
    queue = Key(
        "ZSET waiter by the microsecond of its arrival. A waiter goes when it gets a permit, leaves or dies. "
        "Expires six seconds after the last heartbeat of any waiter."
    )
    beats = Key(
        "ZSET waiter by the microsecond until which it counts as alive. A waiter goes with its place in the queue. "
        "Expires six seconds after the last heartbeat of any waiter."
    )
    stats = Key(
        "HASH declared limit, longest lease and figures of contention. Expires a month after the last use."
    )
    use = Key(
        "HASH minute of two hours -> the permits in use in that minute. A field goes when its minute comes again. "
        "Expires eight days after the last change, a day after the longest lease."
    )
    wake = SharedKey(
        'LIST with at most one token, which wakes a waiter; one per waiter (prefix of it: ends in ":" and the '
        "waiter's permit). Expires after some seconds."
    )
    ended = SharedKey(
        "STRING call that ended a permit, so that a repeated call is recognised; one per permit (prefix of it: "
        'ends in ":" and the permit). Expires after half a minute.'
    )
    limits = SharedKey(
        "HASH name -> limit that was set by hand, for a bucket. An entry goes when the limit is reset."
    )
    names = SharedKey(
        "ZSET name by the day of its last use, for a bucket. An entry goes a month later, unless its limit was set "
        "by hand. The key goes a month after the last use in the bucket."
    )


@lru_cache(maxsize=1_024)
def _made(prefix: str, name: str) -> SemaphoreKeys:
    return SemaphoreKeys(name)
