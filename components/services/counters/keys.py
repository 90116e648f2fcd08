"""Keys of counters over time. The entity is a bucket, for counters by name. (services/counters)"""

from __future__ import annotations

from components.kit.keyspace import _key


def counter_samples(tag: str, name: str) -> str:
    """
    HASH slot -> count, per stored precision and window of 120 slots (prefix of "/", precision, ":", window; in
    scripts also of the name). Expires when its last slot is older than what is kept.
    """
    return _key("counters", tag, f"samples:{name}")


def counter_names(tag: str) -> str:
    """
    ZSET name by the microsecond it was last seen (in scripts also prefix to ":" and a family, and to "-families"). An
    entry goes with its last sample. Expires with the last.
    """
    return _key("counters", tag, "names")


def counter_family(tag: str, family: str) -> str:
    """ZSET names of a family, as names. An entry goes with its last sample. Expires as that."""
    return _key("counters", tag, f"names:{family}")


def counter_families(tag: str) -> str:
    """ZSET what stands before a colon in names, as these. An entry goes with its last sample. Expires as that."""
    return _key("counters", tag, "names-families")


def counter_source(tag: str, source: str) -> str:
    """STRING number of the last call of one that sends. Expires an hour after it."""
    return _key("counters", tag, f"source:{source}")
