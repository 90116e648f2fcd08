"""
Buckets: locks and semaphores have names without end, and each must lie in one hash slot together with an index that
lists it. So a name falls into one of a few buckets, whose number is the hash tag of its keys.
"""

from __future__ import annotations

from zlib import crc32

#: So few that a page can ask each, and enough to spread over the nodes of a cluster.
BUCKETS = tuple(f"{number:02d}" for number in range(32))


def bucket(name: str) -> str:
    """The bucket of *name*, for ever the same."""
    return BUCKETS[crc32(name.encode("utf-8", "surrogatepass")) % len(BUCKETS)]
