"""Waits for locks and semaphores: call the functions of COMPONENTS["ON_WAIT"] when one has ended."""

from __future__ import annotations

import logging
from typing import Literal

from components.conf import functions

logger = logging.getLogger(__name__)


def tell_waited(kind: Literal["lock", "semaphore"], name: str, seconds: float, *, is_granted: bool) -> None:
    """
    Call the functions with what was waited for, for how long, and whether it was granted.

    It is called where the wait was: in the same thread or coroutine. Errors are logged and not raised, because the
    caller may hold the lock by now.
    """
    try:
        for function in functions("on_wait"):
            function(kind, name, seconds, is_granted)
    except Exception:
        logger.exception('A function of COMPONENTS["ON_WAIT"] failed after a wait for the %s %r.', kind, name)
