"""
Long-polls: how long one waits, how many may, and what the others are told.

Each takes a place, of which a process has COMPONENTS["MAX_WAITERS"], and a person of these
COMPONENTS["MAX_WAITERS_PER_PERSON"]: so nobody takes the places of all others. Who finds none, and everybody under
WSGI, where a request that waits costs a thread, is answered at once and told when to come back: that is what clients
of a long-poll expect, so a tab too many goes on as all do where nobody can wait. A client that goes away is noticed
by Django, which cancels the view: that gives the place back.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from asgiref.sync import SyncToAsync, sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest

from components.api.fields import Values
from components.conf import conf
from components.exceptions import WaitersFull

LONGEST = 55.0  # seconds: below the minute after which proxies give up
_DEFAULT = 25.0  # seconds
_RETRY_AFTER = (3, 8)  # seconds: the least and the most, so that a crowd does not come back at once
_JITTER = 0.1  # part of the time that is taken off by chance

_guard = Lock()
#: How often each person waits; who does not has no entry.
_waiting: Counter[str] = Counter()


@contextmanager
def place(user: str) -> Iterator[None]:
    """Take a place to wait at for *user*. Raises WaitersFull if there is none, for them or for anybody."""
    with _guard:
        count = _waiting.total()
        if count >= conf().max_waiters:
            raise WaitersFull(f"{count} wait in this process already.")
        if _waiting[user] >= conf().max_waiters_per_person:
            count = _waiting[user]
            _forget_if_none(user)
            raise WaitersFull(f"The person waits {count} times in this process already.")
        _waiting[user] += 1
    try:
        yield
    finally:
        with _guard:
            _waiting[user] -= 1
            _forget_if_none(user)


def _forget_if_none(user: str) -> None:
    if not _waiting[user]:
        del _waiting[user]


def waiters() -> int:
    """How many wait in this process now."""
    return _waiting.total()


def patience(request: HttpRequest, values: Values) -> float:
    """How many seconds this request may wait."""
    asked = values.number("timeout", _DEFAULT, most=LONGEST)
    if not isinstance(request, ASGIRequest):
        return 0.0
    return asked * random.uniform(1 - _JITTER, 1)


def retry_after() -> dict[str, str]:
    """For those who could not wait."""
    return {"Retry-After": str(random.randint(*_RETRY_AFTER))}


async def let_go() -> None:
    """
    Give back what the request holds since it was authenticated: a thread, and in it a connection to the database.

    Otherwise each who waits would have both. They come anew when they are needed.
    """
    if not await sync_to_async(_close_connections)():
        return
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is not None and (executor := SyncToAsync.context_to_thread_executor.pop(context, None)):
        executor.shutdown(wait=False)


def _close_connections() -> bool:
    """Whether nothing is left open; a transaction is not ended."""
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            return False
        connection.close()
    return True
