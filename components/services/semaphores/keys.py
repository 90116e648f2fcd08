"""The keys of semaphores."""

from __future__ import annotations

from components.kit.keyspace import _key

# Semaphores. The entity is a bucket, for semaphores by name. (services/semaphores)


def semaphore_holders(tag: str, name: str) -> str:
    """ZSET permit by the microsecond its lease ends. Goes on release or after that end. Expires after a month."""
    return _key("semaphores", tag, f"holders:{name}")


def semaphore_heavy(tag: str, name: str) -> str:
    """ZSET permit by its weight, if that is above 1. Goes with the holder. Expires after a month."""
    return _key("semaphores", tag, f"heavy:{name}")


def semaphore_since(tag: str, name: str) -> str:
    """ZSET permit by the microsecond it was granted. Goes with the holder. Expires after a month."""
    return _key("semaphores", tag, f"since:{name}")


def semaphore_queue(tag: str, name: str) -> str:
    """
    ZSET waiter by the microsecond of its arrival. Goes when it holds, leaves or dies. Expires six seconds after the
    last heartbeat of all.
    """
    return _key("semaphores", tag, f"queue:{name}")


def semaphore_beats(tag: str, name: str) -> str:
    """
    ZSET waiter by the microsecond until which it counts as alive. Goes with its place. Expires six seconds after the
    last heartbeat of all.
    """
    return _key("semaphores", tag, f"beats:{name}")


def semaphore_wake(tag: str, permit: str) -> str:
    """LIST of at most one token that wakes one waiter; it says "look". Expires after seconds."""
    return _key("semaphores", tag, f"wake:{permit}")


def semaphore_ended(tag: str, permit: str) -> str:
    """STRING, the call that ended a permit, for one that is sent again. Expires after half a minute."""
    return _key("semaphores", tag, f"ended:{permit}")


def semaphore_stats(tag: str, name: str) -> str:
    """HASH declared limit and figures of contention. Expires a month after the last use."""
    return _key("semaphores", tag, f"stats:{name}")


def semaphore_limits(tag: str) -> str:
    """HASH name -> limit that was set by hand. An entry goes when it is reset."""
    return _key("semaphores", tag, "limits")


def semaphore_names(tag: str) -> str:
    """
    ZSET name by the day of its last use. An entry goes a month after, unless its limit was set by hand; so do all,
    a month after the last use in this bucket.
    """
    return _key("semaphores", tag, "names")
