"""
Task ids: UUIDs of version 7 (RFC 9562), so that ids sort by creation.

Ready tasks of one priority that became runnable in the same millisecond run in the order of their ids, and
so in the order in which a process pushed them. Nothing else depends on the producer's clock.
"""

from __future__ import annotations

import secrets
import time
from threading import Lock

_guard = Lock()
_last = 0


def new_id() -> str:
    """32 hexadecimal digits, greater than any that this process made before."""
    global _last
    with _guard:
        # 48 bits of milliseconds and 12 of a fraction; counted up where the clock stands still or turns back.
        _last = max(_last + 1, (time.time_ns() << 12) // 1_000_000)
        ticks = _last
    milliseconds, fraction = ticks >> 12, ticks & 0xFFF
    random = secrets.randbits(62)
    return f"{milliseconds:012x}7{fraction:03x}{(0b10 << 62) | random:016x}"
