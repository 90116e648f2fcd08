"""briefly(): a question to Redis that may not hold up a page that is of use without the answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

from django.utils.translation import get_language, override

_T = TypeVar("_T")

_PATIENCE = 0.5  # seconds that a page waits
_PAUSE = 10.0  # seconds, after no answer, in which this process does not ask

_asks_again_at = 0.0


def briefly(ask: Callable[[], _T | None]) -> _T | None:
    """
    Return what *ask* returns; None if that takes long, or if that was so a few seconds ago.

    It is asked in a thread, which goes on alone if it takes long. If it returns None, there is a pause as well.
    """
    global _asks_again_at
    if time.monotonic() < _asks_again_at:
        return None
    answers = SimpleQueue[_T | None]()
    language = get_language()

    def run() -> None:
        with override(language):
            answers.put(ask())

    Thread(target=run, daemon=True).start()
    try:
        found = answers.get(timeout=_PATIENCE)
    except Empty:
        found = None
    _asks_again_at = 0.0 if found is not None else time.monotonic() + _PAUSE
    return found
