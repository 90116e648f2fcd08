"""
lock(name), alock(name): a lock of the project's Redis, within the app's keyspace. Its errors are this app's.
"""

from __future__ import annotations

from typing import TypedDict, TypeVar, Unpack

from components.kit.client import get_async_client, get_client
from components.services.locks.asynchronous import AsyncLock
from components.services.locks.keys import LockKeys
from components.services.locks.threaded import Lock

DEFAULT_TIMEOUT = 30.0  # seconds

_L = TypeVar("_L", Lock, AsyncLock)


class LockOptions(TypedDict, total=False):
    """What lock() and its kin take beside the name, as Lock does; durations in seconds."""

    timeout: float | None
    sleep: float
    blocking: bool
    blocking_timeout: float | None
    thread_local: bool
    raise_on_release_error: bool
    fair: bool
    auto_renewal: bool
    owner: str | None
    min_replicas: int


def lock(name: str, **options: Unpack[LockOptions]) -> Lock:
    """
    The lock *name*; the options are those of Lock, but the timeout is 30 seconds where none is given.

        with lock("item:42", timeout=10, blocking_timeout=2) as held:
            Item.objects.fenced(held.fence).filter(pk=42).update(owner=buyer)

    Nothing is sent before it is acquired. Where Lock raises redis-py's errors of a server that does not answer, it
    raises RedisUnavailable.
    """
    return _of_this_app(Lock(get_client(), key_of(name), **with_defaults(options)))


def alock(name: str, **options: Unpack[LockOptions]) -> AsyncLock:
    """The lock *name* for coroutines: the same lock. Raises NoEventLoop outside of a loop."""
    return _of_this_app(AsyncLock(get_async_client(), key_of(name), **with_defaults(options)))


def key_of(name: str) -> str:
    """Return the key of the lock *name*. Raises InvalidName."""
    return LockKeys.named(name).lock


def with_defaults(options: LockOptions) -> LockOptions:
    return {"timeout": DEFAULT_TIMEOUT, **options}


def _of_this_app(made: _L) -> _L:
    made.translates = True
    return made
