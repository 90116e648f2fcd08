"""
The keys of locks and of fenced values. The entity of a lock that lock() made is a bucket of locks.

For a lock at a key of the caller's own, all other keys are in the slot of that key. On a cluster, this includes the
keys that several locks share: all such locks of a slot share them.
"""

from __future__ import annotations

import re
from binascii import crc_hqx
from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import count
from typing import Any

from redis import RedisCluster
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from components.conf import conf
from components.exceptions import InvalidName
from components.kit.keyspace import BUCKETS, Key, SharedKey, bucket, stem
from components.kit.validation import check_name

_TAG = re.compile(r"\{([^}]+)\}")


class _PooledKey(Key):
    """Declare a key that several locks share, which may be in another slot than their bucket."""

    def _spell(self, part: str) -> Callable[[Any], str]:
        return lambda keys: f"{keys._shared}{part}"


class LockKeys:
    """The keys of the lock at *key*, named as in the scripts. Raises InvalidName."""

    _is_kept = True

    def __init__(self, key: str, *, on_cluster: bool = False) -> None:
        tag, name = _parts(key)
        check_name("lock", name)
        self._key, self._stem, self._end = key, _stem(tag), f":{name}"
        self._shared = self._stem if tag in BUCKETS else _stem(_shared_by(key, on_cluster))
        if on_cluster and key_slot(key.encode()) != key_slot(self.state.encode()):
            raise InvalidName(
                f"On a cluster, a lock cannot have the key {key!r}: its braces keep all other keys out of its slot. "
                "Use another key."
            )

    @staticmethod
    def of(key: str | bytes | memoryview, client: Any) -> LockKeys:
        """Return the keys of the lock at *key*, as *client* encodes them. Raises InvalidName."""
        return _made(
            conf().prefix, key if isinstance(key, str) else _text(key), _is_cluster(client.__class__)
        )

    @staticmethod
    def named(name: str) -> LockKeys:
        """Return the keys of the lock that lock() makes for *name*. Raises InvalidName."""
        return _named(conf().prefix, check_name("lock", name))

    @classmethod
    def of_bucket(cls, tag: str) -> LockKeys:
        """Return the beginnings of the keys of all locks of a bucket; *held* is the key of its index."""
        keys = object.__new__(cls)
        keys._stem, keys._end, keys._shared = _stem(tag), ":", _stem(tag)
        keys._key = f"{keys._stem}lock:"
        return keys

    @staticmethod
    def name_of(key: str) -> str | None:
        """Return the name of the lock at *key*; None if that is a key of the caller's own."""
        tag, name = _parts(key)
        return name if tag in BUCKETS and key == f"{_stem(tag)}lock:{name}" else None

    @cached_property
    def lock(self) -> str:
        """STRING token of the holder. Goes on release. Expires at the end of the lock's time."""
        return self._key

    state = Key(
        "HASH figures of contention, and the ids of a holder with a token of their own and of an extension. It "
        "exists only if it has content. Expires a day after the end of the last holder's time."
    )
    queue = Key(
        "ZSET waiter by the microsecond of its arrival. A waiter goes when it gets the lock, leaves or dies. "
        "Expires six seconds after the last heartbeat of any waiter."
    )
    beats = Key(
        "ZSET waiter by the microsecond until which it counts as alive. A waiter goes with its place in the queue. "
        "Expires six seconds after the last heartbeat of any waiter."
    )
    wake = SharedKey(
        'LIST with at most one token, which wakes a waiter; one per waiter (prefix of it: ends in ":" and the '
        "waiter). Expires after some seconds."
    )
    held = _PooledKey(
        "ZSET key of a lock by the millisecond its time ends; and, with negative scores, the fence of each lock "
        "that was not released, the latest fence of all, and the longest time of a lock. An entry goes on release, "
        "or a day after that end. "
        "Expires a day after the latest end."
    )
    released = _PooledKey(
        'SET released fences; one per hundred seconds (prefix of it: ends in ":" and their number since 1970). '
        "Expires two minutes after the last release."
    )
    let_go = _PooledKey(
        "STRING mark of a token that was released by a caller who did not know its fence; one per token (prefix of "
        'it: ends in ":" and the token). Expires after two minutes.'
    )


class FencedKeys:
    """The keys of the fenced value *name*."""

    def __init__(self, name: str) -> None:
        self._stem = stem("fences", name)

    value = SharedKey(
        "STRING value that was written last. Expires after its ttl, if it has one; else goes when it is deleted."
    )
    fence = SharedKey("STRING fence of the last write, 19 digits. Expires a week after the value has gone.")


@lru_cache(maxsize=1_024)
def _named(prefix: str, name: str) -> LockKeys:
    return LockKeys(f"{_stem(bucket(name))}lock:{name}")


@lru_cache(maxsize=1_024)
def _made(prefix: str, key: str, on_cluster: bool) -> LockKeys:
    return LockKeys(key, on_cluster=on_cluster)


def _parts(key: str) -> tuple[str, str]:
    """Return the tag and the name that the other keys are made of."""
    match = _TAG.search(key)
    tag = match[1] if match and key.index("{") == match.start() else key
    if tag in BUCKETS and key.startswith(start := f"{_stem(tag)}lock:"):
        return tag, key.removeprefix(start)
    return tag, key


def _stem(tag: str) -> str:
    """
    Return the beginning of the keys of a tag. For a key of the caller's own, the tag is that key, unchanged, so that
    all keys are in its slot. Only a closing brace has to be replaced.
    """
    if "}" in tag or not ("{" in tag or "%" in tag):
        return stem("locks", tag)
    return f"{conf().prefix}:locks:{{{tag}}}:"


def _shared_by(key: str, on_cluster: bool) -> str:
    """Return the tag of the keys that locks at keys of the caller's own share."""
    return _slot_tag(key_slot(key.encode())) if on_cluster else bucket(key)


@lru_cache(maxsize=REDIS_CLUSTER_HASH_SLOTS)
def _slot_tag(slot: int) -> str:
    """Return a hash tag in *slot*, the same one in each process. The search takes milliseconds."""
    tags = (b"slot-%d" % number for number in count())
    return next(tag for tag in tags if crc_hqx(tag, 0) % REDIS_CLUSTER_HASH_SLOTS == slot).decode()


@lru_cache(maxsize=64)
def _is_cluster(client: type[Any]) -> bool:
    return issubclass(client, RedisCluster | AsyncRedisCluster)


def _text(key: Any) -> str:
    """Return a name as redis-py sends it. Raises InvalidName."""
    if isinstance(key, int | float) and not isinstance(key, bool):
        return repr(key)
    try:
        return bytes(memoryview(key)).decode()  # bytes() alone takes numbers as well
    except (UnicodeDecodeError, TypeError):
        raise InvalidName(
            f"A lock cannot have the key {key!r}: it must be text, UTF-8, or a number."
        ) from None
