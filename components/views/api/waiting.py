"""
Long-polls: how long one waits, how many may, and what the others are told.

Each takes a place, of which a process has COMPONENTS["MAX_WAITERS"]. Who finds none, and everybody under WSGI, where
a request that waits costs a thread, is answered at once and told when to come back. A client that goes away is
noticed by Django, which cancels the view: that gives the place back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest

from components.conf import conf
from components.exceptions import WaitersFull
from components.views.api.fields import Values

LONGEST = 55.0  # seconds: below the minute after which proxies give up
_DEFAULT = 25.0  # seconds
_RETRY_AFTER = (3, 8)  # seconds: the least and the most, so that a crowd does not come back at once
_JITTER = 0.1  # part of the time that is taken off by chance

_guard = Lock()
_waiting = 0


@contextmanager
def place() -> Iterator[None]:
    """A place to wait at. Raises WaitersFull."""
    global _waiting
    with _guard:
        if _waiting >= conf().max_waiters:
            raise WaitersFull(f"{_waiting} wait in this process already.")
        _waiting += 1
    try:
        yield
    finally:
        with _guard:
            _waiting -= 1


def waiters() -> int:
    """How many wait in this process now."""
    return _waiting


def patience(request: HttpRequest, values: Values) -> float:
    """How many seconds this request may wait."""
    asked = values.number("timeout", _DEFAULT, most=LONGEST)
    if not isinstance(request, ASGIRequest):
        return 0.0
    return asked * random.uniform(1 - _JITTER, 1)


def retry_after() -> dict[str, str]:
    """For those who could not wait."""
    return {"Retry-After": str(random.randint(*_RETRY_AFTER))}


async def let_go_of_the_database() -> None:
    """Close the connection that authentication has opened: otherwise each who waits would hold one."""
    await sync_to_async(_close)()


def _close() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
