"""
Throttle: so many requests of one person in a while, counted in this process.

It is there for what costs one read of Redis, so it does not ask Redis itself. A site of several processes lets
through what each of them does. One number is kept for a person, of the latest ten thousand.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict

from components.api.problems import Problem

_MOST = 10_000  # persons


class Throttle:
    """*burst* requests at once, and *rate* a second from then on. Who asks more often is told *why* he may not."""

    def __init__(self, *, rate: float, burst: int, why: str = "That is more than anybody types.") -> None:
        self._interval, self._why = 1 / rate, why
        self._slack = (burst - 1) * self._interval
        #: When all that was let through would be done at that rate; who came last is last.
        self._done_at: OrderedDict[str, float] = OrderedDict()
        self._guard = threading.Lock()

    def check(self, user: str) -> None:
        """Count a request. Raises Problem if it is one too many; that one is not counted."""
        now = time.monotonic()
        with self._guard:
            done_at = max(self._done_at.get(user, now), now)
            early = done_at - now - self._slack
            if early <= 0:
                self._done_at[user] = done_at + self._interval
                self._done_at.move_to_end(user)
                if len(self._done_at) > _MOST:
                    self._done_at.popitem(last=False)
        if early > 0:
            seconds = max(1, math.ceil(early))
            raise Problem("too-fast", self._why, headers={"Retry-After": str(seconds)})
