"""How keys are spelled: <prefix>:<pattern>:{<name>}:<part>."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from components.conf import conf

#: This number is small enough for a page to ask each bucket, and large enough to spread over the nodes of a cluster.
BUCKETS = tuple(f"{number:02d}" for number in range(32))
_ESCAPED = str.maketrans({each: f"\\{each}" for each in "\\*?[]"})
_T = TypeVar("_T")


def stem(pattern: str, name: str) -> str:
    """Return what all keys of one entity begin with; the braces make it their hash tag. Raises ValueError."""
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
    if not name:
        raise ValueError(f"A name in {pattern} is empty. Give it a name, so that its keys lie in one slot.")
    tag = name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    return f"{prefix}:{pattern}:{{{tag}}}:"


class Key:
    """
    Declare a key of an entity, as a property: the _stem of the object, *part*, and its _end.

    *about* is its documentation, *part* by default the name of the property, with hyphens. If the class has a true
    _is_kept, since its objects are used again, each object makes the key once.
    """

    def __init__(self, about: str, *, part: str = "") -> None:
        self._about, self._part = about, part

    def __set_name__(self, owner: type, name: str) -> None:
        spell = self._spell(self._part or name.replace("_", "-"))
        spell.__doc__ = self._about
        if getattr(owner, "_is_kept", False):
            kept = cached_property(spell)
            kept.__set_name__(owner, name)
            setattr(owner, name, kept)
        else:
            setattr(owner, name, property(spell))  # which Python reads faster than an instance of a subclass

    def _spell(self, part: str) -> Callable[[Any], str]:
        return lambda keys: f"{keys._stem}{part}{keys._end}"

    if TYPE_CHECKING:

        def __get__(self, keys: Any, owner: type | None = None) -> str: ...


class SharedKey(Key):
    """Declare a key that all entities with the same tag share: it has no _end."""

    def _spell(self, part: str) -> Callable[[Any], str]:
        return lambda keys: f"{keys._stem}{part}"


def bucket(name: str) -> str:
    """Return the bucket of *name*, which never changes."""
    return BUCKETS[crc32(name.encode("utf-8", "surrogatepass")) % len(BUCKETS)]


def by_bucket(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the *names* in each bucket, each once."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for each in dict.fromkeys(names):
        found[bucket(each)].append(each)
    return found


def by_call(names: Iterable[str], most: int) -> list[tuple[str, list[str]]]:
    """Return the calls that are needed for all *names*: of each the bucket, and at most so many names in it."""
    return [(tag, some) for tag, group in by_bucket(names).items() for some in parts(group, most)]


def parts(things: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """Yield *things* in lists of at most so many."""
    rest = iter(things)
    while some := list(islice(rest, most)):
        yield some
