"""
The thread of a worker that blocks on Redis, so that the loop does not have to.

A wait is a blocking command of a few seconds. It takes at most one token, which carries no data: if a worker dies or
stops listening after it took a token, other workers only start the task later, when they next poll.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from components.exceptions import RedisUnavailable


class Listener(threading.Thread):
    """
    A thread that calls *wait* whenever the loop wants to be woken, and then calls *wake* once: with True for a token,
    with False if Redis is unavailable, which the loop will notice itself.
    """

    def __init__(self, wait: Callable[[], bool], wake: Callable[[bool], None]) -> None:
        super().__init__(name="listener", daemon=True)
        self._wait = wait
        self._wake = wake
        self._wanted = threading.Event()
        self._is_over = False

    def listen(self, wanted: bool) -> None:
        (self._wanted.set if wanted else self._wanted.clear)()

    def end(self) -> None:
        """Stop listening. A wait that has begun continues for its few seconds."""
        self._is_over = True
        self._wanted.set()

    def run(self) -> None:
        while not self._is_over:
            self._wanted.wait()
            if not self._is_over:
                self._take_token()

    def _take_token(self) -> None:
        try:
            has_token = self._wait()
            is_away = False
        except RedisUnavailable:
            has_token, is_away = False, True
        if has_token or is_away:
            self._wanted.clear()
            self._wake(has_token)
