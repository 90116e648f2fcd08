"""
Throttle: limits how often a person makes a request, counted in this process.

It protects requests that cost one read of Redis, so it does not ask Redis itself. Each process of a site counts on
its own. It keeps one number for each of the last ten thousand people.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from components.api.problems import Problem

_MOST = 10_000  # people


_TOO_MANY = _("These are too many requests.")


class Throttle:
    """*burst* requests at once, then *rate* a second. Any further request is refused with the sentence *why*."""

    def __init__(self, *, rate: float, burst: int, why: str | Promise = _TOO_MANY) -> None:
        self._interval, self._why = 1 / rate, why
        self._slack = (burst - 1) * self._interval
        #: When each person's requests would all be served at that rate. The person of the latest request comes last.
        self._done_at: OrderedDict[str, float] = OrderedDict()
        self._guard = threading.Lock()

    def check(self, user: str) -> None:
        """Count a request. Raises Problem, without counting it, if it is one too many."""
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
