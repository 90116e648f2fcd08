"""The keys of locks, and of values that fences guard."""

from __future__ import annotations

from components.conf import conf
from components.kit.keyspace import _key

# Locks. The entity is a bucket of names; for a key of the caller's own it is that key's slot. (services/locks)


def _lock_key(tag: str, part: str) -> str:
    """In the slot of the caller's own key its tag stands as it is there; only a closing brace cannot."""
    if "}" in tag or not ("{" in tag or "%" in tag):
        return _key("locks", tag, part)
    return f"{conf().prefix}:locks:{{{tag}}}:{part}"


def lock(tag: str, name: str) -> str:
    """STRING, the token of the holder. Goes on release. Expires at the end of its time."""
    return _lock_key(tag, f"lock:{name}")


def lock_state(tag: str, name: str) -> str:
    """
    HASH figures of contention, and what identifies a holder by a token of their own and an extension.

    It exists only while there is something of it. Expires a day after the end of the last holder's time.
    """
    return _lock_key(tag, f"state:{name}")


def lock_queue(tag: str, name: str) -> str:
    """
    ZSET waiter by the microsecond of its arrival. Goes when it holds, leaves or dies. Expires six seconds after the
    last heartbeat of all.
    """
    return _lock_key(tag, f"queue:{name}")


def lock_beats(tag: str, name: str) -> str:
    """
    ZSET waiter by the microsecond until which it counts as alive. Goes with its place. Expires six seconds after the
    last heartbeat of all.
    """
    return _lock_key(tag, f"beats:{name}")


def lock_wake(tag: str, token: str) -> str:
    """LIST of at most one token that wakes one waiter; it says "look". Expires after seconds."""
    return _lock_key(tag, f"wake:{token}")


def lock_held(tag: str) -> str:
    """
    ZSET key of a lock by the millisecond its time ends, and below zero the fences: that of each lock that was not
    released, and the latest of all. An entry goes on release, or a day after that end. Expires a day after the
    latest end.
    """
    return _lock_key(tag, "held")


def lock_released(tag: str, digits: str) -> str:
    """SET of fences that were released; *digits* are their first. Expires two minutes after the last of them."""
    return _lock_key(tag, f"released:{digits}")


def lock_let_go(tag: str, token: str) -> str:
    """STRING, a token that was released by a caller who did not know its fence. Expires after two minutes."""
    return _lock_key(tag, f"let-go:{token}")


# Fenced values. The entity is the value. (services/fences)


def fenced_value(name: str) -> str:
    """STRING, what was written last. Expires after its ttl, if it has one; else goes when it is deleted."""
    return _key("fences", name, "value")


def fenced_value_fence(name: str) -> str:
    """STRING, the fence of the last write, 19 digits. Expires a week after the value has gone."""
    return _key("fences", name, "fence")
