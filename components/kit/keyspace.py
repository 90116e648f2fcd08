"""
How a key is spelled: <prefix>:<pattern>:{<name>}:<part>.

The braces are a cluster's hash tag: all keys of one entity lie in one slot.
"""

from __future__ import annotations

import re
from functools import lru_cache

from components.conf import conf


def _key(pattern: str, name: str, part: str) -> str:
    return _stem(conf().prefix, pattern, name) + part


def stem(pattern: str, name: str) -> str:
    """Return what all keys of one entity begin with; the braces make it their hash tag. Raises ValueError."""
    return _stem(conf().prefix, pattern, name)


def ours() -> re.Pattern[bytes]:
    """What matches the beginning of every key of this app, and of no key that Django's cache makes."""
    return re.compile(rb"%b:[a-z][^:{}]*:\{" % re.escape(conf().prefix.encode()))


@lru_cache(maxsize=1_024)
def _stem(prefix: str, pattern: str, name: str) -> str:
    """What all keys of one entity begin with."""
    if not name:
        raise ValueError(
            f"A name of {pattern} is empty; without a name its keys would lie in no common slot."
        )
    tag = name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{prefix}:{pattern}:{{{tag}}}:"
