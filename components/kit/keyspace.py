"""
How keys are spelled: <prefix>:<pattern>:{<name>}:<part>.

The braces are a cluster's hash tag: all keys of one entity lie in one slot. If a pattern has very many entities,
which must lie in one slot with an index that lists them, the tag is a bucket: each name belongs to one of a few
buckets.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zlib import crc32

from components.conf import conf

#: This number is small enough for a page to ask each bucket, and large enough to spread over the nodes of a cluster.
BUCKETS = tuple(f"{number:02d}" for number in range(32))
_ESCAPED = str.maketrans({each: f"\\{each}" for each in "\\*?[]"})


def stem(pattern: str, name: str) -> str:
    """
    Return the beginning that all keys of one entity share; the braces make it their hash tag. Raises ValueError.
    """
    return _stem(conf().prefix, pattern, name)


def ours() -> re.Pattern[bytes]:
    """Return a pattern that matches all keys of this app, and none that Django's cache makes."""
    return re.compile(rb"%b:[a-z][^:{}]*:\{" % re.escape(conf().prefix.encode()))


def escaped(text: str) -> str:
    """Return the pattern that matches just *text*, as Redis spells patterns."""
    return text.translate(_ESCAPED)


def prefix_pattern() -> str:
    """Return the pattern of what all keys and channels of this app begin with, before the first colon."""
    return escaped(conf().prefix)


@lru_cache(maxsize=1_024)
def _stem(prefix: str, pattern: str, name: str) -> str:
    """Return the beginning that all keys of one entity share."""
    if not name:
        raise ValueError(f"A name in {pattern} is empty. Give it a name, so that its keys lie in one slot.")
    tag = name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{prefix}:{pattern}:{{{tag}}}:"


class Key(property):
    """
    A key of an entity, as a property: the _stem of the object, *part*, and its _end.

    *about* is its documentation, *part* by default the name of the property, with hyphens.
    """

    def __init__(self, about: str, *, part: str = "") -> None:
        super().__init__(lambda keys: f"{keys._stem}{self._part}{keys._end}", doc=about)
        self._part = part

    def __set_name__(self, owner: type, name: str) -> None:
        self._part = self._part or name.replace("_", "-")

    if TYPE_CHECKING:

        def __get__(self, keys: Any, owner: type | None = None) -> str: ...  # type: ignore[override]


def bucket(name: str) -> str:
    """Return the bucket of *name*, which never changes."""
    return BUCKETS[crc32(name.encode("utf-8", "surrogatepass")) % len(BUCKETS)]
