"""
From the key that holds a lock's token to all its keys, and between that key and the name that people use.
"""

from __future__ import annotations

import re
from binascii import crc_hqx
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from redis import RedisCluster
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from components.exceptions import InvalidName
from components.kit.buckets import BUCKETS, bucket
from components.kit.values import check_name
from components.services.locks import keys

_TAG = re.compile(r"\{([^}]+)\}")
_ANY = BUCKETS[0]


@dataclass(frozen=True)
class LockKeys:
    """The keys that each script wants."""

    acquire: list[str]
    release: list[str]
    extend: list[str]
    state: str
    queue: str
    beats: str
    #: The index that lists it while it is held.
    held: str
    #: The prefix of the lists that wake one waiter each.
    wake: str

    @classmethod
    def of(cls, key: str | bytes | memoryview, client: Any) -> LockKeys:
        """Of the lock at *key*, as *client* will see them. Raises InvalidName."""
        return _keys(
            key if isinstance(key, str) else _text(key), _is_cluster(client.__class__), keys.lock_held(_ANY)
        )


@lru_cache(maxsize=1_024)
def _keys(key: str, on_cluster: bool, keyspace: str) -> LockKeys:
    """In another *keyspace* it has other keys."""
    tag, name = _parts(key)
    check_name("lock", name)
    state, queue, beats = (part(tag, name) for part in (keys.lock_state, keys.lock_queue, keys.lock_beats))
    wake = keys.lock_wake(tag, "")
    # What many locks share lies in the buckets. A key of the caller's own has a slot of its own on a cluster, where
    # all locks of that slot share it.
    shared_by = tag if tag in BUCKETS else _slot_tag(key_slot(key.encode())) if on_cluster else bucket(key)
    held = keys.lock_held(shared_by)
    ends = [keys.lock_released(shared_by, ""), keys.lock_let_go(shared_by, "")]
    if on_cluster and key_slot(key.encode()) != key_slot(state.encode()):
        raise InvalidName(
            f"On a cluster a lock cannot have the key {key!r}: braces keep all other keys out of its slot."
        )
    shared = [key, state, queue, beats, held]
    return LockKeys(shared, [*shared, wake, *ends], [key, state, held], state, queue, beats, held, wake)


@lru_cache(maxsize=REDIS_CLUSTER_HASH_SLOTS)
def _slot_tag(slot: int) -> str:
    """Return a hash tag that lies in *slot*, the same in each process. The search takes milliseconds."""
    tags = (b"slot-%d" % number for number in count())
    return next(tag for tag in tags if crc_hqx(tag, 0) % REDIS_CLUSTER_HASH_SLOTS == slot).decode()


@lru_cache(maxsize=64)
def _is_cluster(client: type[Any]) -> bool:
    return issubclass(client, RedisCluster | AsyncRedisCluster)


def key_of(name: str) -> str:
    """The key of the lock *name*. Raises InvalidName."""
    return _key_of(name, keys.lock_held(_ANY)) if isinstance(name, str) else check_name("lock", name)


@lru_cache(maxsize=1_024)
def _key_of(name: str, keyspace: str) -> str:
    return keys.lock(bucket(check_name("lock", name)), name)


def name_of(key: str) -> str | None:
    """The name of the lock at *key*; None if that is a key of somebody's own."""
    tag, name = _parts(key)
    return name if tag in BUCKETS and key == keys.lock(tag, name) else None


def _parts(key: str) -> tuple[str, str]:
    """The tag and the name that the other keys are made of."""
    match = _TAG.search(key)
    tag = match[1] if match and key.index("{") == match.start() else key
    if tag in BUCKETS and key.startswith(stem := keys.lock(tag, "")):
        return tag, key.removeprefix(stem)
    return tag, key


def _text(key: Any) -> str:
    """Return a name as redis-py sends it."""
    if isinstance(key, str):
        return key
    if isinstance(key, int | float) and not isinstance(key, bool):
        return repr(key)
    try:
        return bytes(memoryview(key)).decode()  # bytes() alone takes numbers as well
    except (UnicodeDecodeError, TypeError):
        raise InvalidName(
            f"A lock cannot have the key {key!r}: it must be text, its UTF-8, or a number."
        ) from None
