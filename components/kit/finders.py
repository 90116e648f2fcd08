"""
Finders: what services contribute to the search of the control room.

A service has a module finder.py. In it, find() is a reading, as card() of card.py is one: it gets the text that
somebody looks for, yields lists of Asks, gets the answers, and returns what it has found. All services are asked
together, so a search takes one round trip to each node. However many names there are, a bounded number is looked at:
those that were used last, and the one that is exactly the text.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TypeAlias

from components.kit.cards import Link
from components.kit.figures import Ask, Reading
from components.kit.scripts import Script
from components.kit.stored import text_of

FIND = Script("kit/find")

#: The longest text that is looked for: no name is longer.
MOST_TEXT = 500
#: Things of one kind that are shown.
MOST_FOUND = 5
#: The names that are looked at, in all buckets together.
_MOST = 10_000
_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True)
class Found:
    """Something that was found: its page, whose label is the thing's name."""

    page: Link
    #: What it is, if not what the service's pages are about.
    kind: str = ""


FinderReading: TypeAlias = Reading[list[Found]]


def ask_names(keys: Sequence[str], text: str, *, starts: Sequence[str] = ()) -> list[Ask]:
    """Return the questions for the names in the sorted sets at *keys*; *starts* is what precedes them in each."""
    request = {"wanted": small(text), "exact": text, "most": _MOST // len(keys), "limit": MOST_FOUND}
    return [
        Ask(key, partial(FIND.put, keys=SimpleNamespace(names=key), start=start, **request))
        for key, start in zip(keys, starts or [""] * len(keys), strict=True)
    ]


def best(names: Iterable[str], text: str) -> list[str]:
    """Return the names that contain *text*, at most MOST_FOUND: that name first, then those that begin with it."""
    wanted = small(text)
    found = {name for name in names if wanted in small(name)}

    def order(name: str) -> tuple[bool, bool, str]:
        return name != text, not small(name).startswith(wanted), name

    return sorted(found, key=order)[:MOST_FOUND]


def best_of(answers: Iterable[Iterable[bytes]], text: str) -> list[str]:
    """Return the best of the answers to ask_names()."""
    return best((text_of(name) for answer in answers for name in answer), text)


def small(text: str) -> str:
    """Return *text* with small letters, but for letters beyond ASCII, which scripts cannot change."""
    return text.translate(_SMALL)
