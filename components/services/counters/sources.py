"""
Sources: who sends counts, and the number of each call, so that one whose reply was lost counts once.

A source has at most one call under way. Its calls have rising numbers, and Redis keeps the last one's for an hour: a
call that comes again, or too late, has none that is larger. So what is remembered grows with how many send at once,
not with what they send. A process that dies leaves its numbers to that hour; a forked child has sources of its own.
"""

from __future__ import annotations

import os
import secrets
from collections import defaultdict, deque

from components.services.counters import keys

#: Seconds: a call that was not answered in that time is not sent again, lest Redis has forgotten its number.
PATIENCE = 1_800


class Source:
    """One that sends to the bucket *tag*."""

    def __init__(self, tag: str) -> None:
        self.id = secrets.token_hex(8)
        #: For the script: made once, since each update needs them.
        self.keys = [
            keys.counter_samples(tag, ""),
            keys.counter_names(tag),
            keys.counter_source(tag, self.id),
        ]
        self._number = 0

    def next_number(self) -> int:
        self._number += 1
        return self._number


#: Those that have no call under way, by bucket. A deque needs no lock.
_idle: defaultdict[str, deque[Source]] = defaultdict(deque)


def take(tag: str) -> Source:
    """A source for a call to the bucket *tag*; give it back when the call is over."""
    try:
        source = _idle[tag].pop()
    except IndexError:
        return Source(tag)
    is_valid = source.keys[0] == keys.counter_samples(tag, "")  # the prefix is a setting
    return source if is_valid else Source(tag)


def give_back(tag: str, source: Source) -> None:
    """Its call is not sent again: it was answered, or given up."""
    _idle[tag].append(source)


def forget() -> None:
    """Begin anew, with other sources."""
    _idle.clear()


os.register_at_fork(after_in_child=forget)
