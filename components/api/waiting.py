"""
Long-polls: how long a request waits, how many may wait, and how further requests are answered.

A process has COMPONENTS["MAX_WAITERS"] places, of which one person can take COMPONENTS["MAX_WAITERS_PER_PERSON"], so
that nobody takes the places of all others. A request that finds no place is answered at once and told when to come
back. So is every request under WSGI, where waiting would cost a thread. Clients of a long-poll expect this, so a
client without a place works like one of a site that cannot wait. When a client goes away, Django cancels the view,
which frees the place.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Annotated, TypeVar

from asgiref.sync import SyncToAsync, sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest
from msgspec import Meta

from components.api.authentication import authenticate_again
from components.conf import conf
from components.exceptions import WaitersFull

T = TypeVar("T")

LONGEST = 55  # seconds: less than the minute after which proxies give up
_RETRY_AFTER = (3, 8)  # seconds, drawn from this range so that a crowd does not come back at once
_JITTER = 0.1  # the largest part of the time that is subtracted at random

Timeout = Annotated[
    float,
    Meta(ge=0, le=LONGEST, description="How many seconds to wait if there is nothing."),
]
PATIENCE = 25  # seconds

_guard = Lock()
#: How many requests of each person wait. A person without any has no entry.
_waiting: Counter[str] = Counter()


async def wait_for(
    request: HttpRequest, user: str, timeout: float, ask: Callable[[float], Awaitable[T]]
) -> tuple[T, dict[str, str]]:
    """
    Return what *ask* returns when it may wait for *timeout* seconds, and no headers. Raises Problem if *user* has
    logged out meanwhile, or may not log in any more.

    If the request cannot wait, return what *ask* returns at once, and a header that says when to come back.
    """
    if isinstance(request, ASGIRequest) and timeout:
        await _let_go()
        try:
            with place(user):
                found = await ask(timeout * random.uniform(1 - _JITTER, 1))
            await authenticate_again(request)
            return found, {}
        except WaitersFull:
            pass
    return await ask(0.0), {"Retry-After": str(random.randint(*_RETRY_AFTER))}


@contextmanager
def place(user: str) -> Iterator[None]:
    """Take a place for *user* to wait. Raises WaitersFull if they have used up their places, or if none is free."""
    with _guard:
        total, own = _waiting.total(), _waiting[user]  # a Counter adds nothing when it is read
        if total >= conf().max_waiters:
            raise WaitersFull(f"{total} requests wait in this process already.")
        if own >= conf().max_waiters_per_person:
            raise WaitersFull(f"{own} requests of this person wait in this process already.")
        _waiting[user] += 1
    try:
        yield
    finally:
        with _guard:
            _waiting[user] -= 1
            if not _waiting[user]:
                del _waiting[user]


def waiters() -> int:
    """Return how many requests wait in this process now."""
    return _waiting.total()


async def _let_go() -> None:
    """Release the thread and the database connection of a request that waits. They are opened again when needed."""
    if not await sync_to_async(_close_connections)():
        return
    context = SyncToAsync.thread_sensitive_context.get(None)
    if context is not None and (executor := SyncToAsync.context_to_thread_executor.pop(context, None)):
        executor.shutdown(wait=False)


def _close_connections() -> bool:
    """Close the database connections, except in a transaction. Return whether all are closed."""
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            return False
        connection.close()
    return True
