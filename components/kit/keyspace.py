"""
How a key is spelled: <prefix>:<pattern>:{<name>}:<part>.

The braces are a cluster's hash tag: all keys of one entity lie in one slot. Where entities have names without end,
and must lie in one slot with an index that lists them, the tag is a bucket: each name falls into one of a few.
"""

from __future__ import annotations

import re
from functools import lru_cache
from zlib import crc32

from components.conf import conf

#: So few that a page can ask each, and enough to spread over the nodes of a cluster.
BUCKETS = tuple(f"{number:02d}" for number in range(32))
_ESCAPED = str.maketrans({each: f"\\{each}" for each in "\\*?[]"})


def stem(pattern: str, name: str) -> str:
    """Return what all keys of one entity begin with; the braces make it their hash tag. Raises ValueError."""
    return _stem(conf().prefix, pattern, name)


def ours() -> re.Pattern[bytes]:
    """What matches the beginning of every key of this app, and of no key that Django's cache makes."""
    return re.compile(rb"%b:[a-z][^:{}]*:\{" % re.escape(conf().prefix.encode()))


def escaped(text: str) -> str:
    """Return the pattern that matches just *text*, as Redis spells patterns."""
    return text.translate(_ESCAPED)


def prefix_pattern() -> str:
    """Return the pattern of what all keys and channels of this app begin with, before the first colon."""
    return escaped(conf().prefix)


@lru_cache(maxsize=1_024)
def _stem(prefix: str, pattern: str, name: str) -> str:
    """What all keys of one entity begin with."""
    if not name:
        raise ValueError(
            f"A name of {pattern} is empty; without a name its keys would lie in no common slot."
        )
    tag = name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{prefix}:{pattern}:{{{tag}}}:"


def bucket(name: str) -> str:
    """The bucket of *name*, for ever the same."""
    return BUCKETS[crc32(name.encode("utf-8", "surrogatepass")) % len(BUCKETS)]
