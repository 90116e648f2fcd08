"""
Ids that nobody has to hand out: of what is stored, and of single calls.

What is stored has a UUID of version 7 (RFC 9562): such ids sort by creation, those of one process exactly.
"""

from __future__ import annotations

import time
from os import urandom
from threading import Lock

_guard = Lock()
_last = 0


def uuid7() -> str:
    """Return 32 hexadecimal digits, greater than any that this process made before."""
    global _last
    with _guard:
        # 48 bits of milliseconds and 12 of a fraction; counted up where the clock stands still or turns back.
        _last = max(_last + 1, (time.time_ns() << 12) // 1_000_000)
        ticks = _last
    random = int.from_bytes(urandom(8)) >> 2
    return f"{ticks >> 12:012x}7{ticks & 0xFFF:03x}{0b10 << 62 | random:016x}"


def new_call() -> str:
    """Return a name for one call, by which a script recognises it if it comes twice."""
    return urandom(8).hex()
