"""
Holding: one acquisition of a lock: its token and fence, the instant until which it is surely held, and whether it is
lost.

Many threads or coroutines can use one lock object; each has a holding of its own, and does not see the others'.
Threads keep it in thread-local storage. A coroutine shares its holding with the tasks that it starts, as context
variables do. If a task acquired a lock and has ended, any coroutine may use that lock, because before Python 3.12
asyncio.wait_for() ran its argument in a separate task.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Hashable, Mapping
from contextvars import ContextVar
from typing import Any
from weakref import ref

from components.kit.client import server_of
from components.kit.leases import Lease, forks


class Holding(Lease):
    """An acquisition of a lock."""

    def __init__(
        self, lock: Any, token: bytes, fence: int, valid_until: float, loop: asyncio.AbstractEventLoop | None
    ) -> None:
        super().__init__(lock._ms / 1000 or math.inf, valid_until, loop)
        self._lock = ref(lock)
        self.token = token
        self.fence = fence

    @property
    def server(self) -> Hashable:
        lock = self._lock()
        return server_of(lock.redis, lock.keys.held) if lock is not None else None

    async def _renew(self) -> bool:
        lock = self._lock()
        return lock is not None and await lock._prolong(self)


class _Owned:
    """Has the token of an acquisition; there is none in a child that was forked after it."""

    _token: bytes | None = None
    _forks = 0

    @property
    def token(self) -> bytes | None:
        return self._token if self._forks == forks() else None

    @token.setter
    def token(self, token: bytes | None) -> None:
        self._token, self._forks = token, forks()


class Shared(_Owned):
    """The holding that all threads and coroutines share, with thread_local=False. Before it, there is no token."""

    holding: Holding | None = None
    #: The token of an acquisition to which Redis did not reply.
    doubtful: bytes | None = None


class ThreadLocal(Shared, threading.local):
    """The holding of one thread."""


class TaskLocal:
    """The holding of a coroutine, shared with the tasks that it starts."""

    def __init__(self) -> None:
        self._all: list[_Own] = []
        self.doubtful: bytes | None = None

    @property
    def token(self) -> bytes | None:
        return own.token if (own := self._own()) else None

    @token.setter
    def token(self, token: bytes | None) -> None:
        own = self._own()
        if own is None:
            if token is None:
                return
            own = _Own()
            self._all.append(own)
            others = {key: known for key, known in (_context.get() or {}).items() if known() is not None}
            _context.set({**others, id(self): ref(own)})
        own.token = token
        if token is None:
            self._all.remove(own)

    @property
    def holding(self) -> Holding | None:
        return own.holding if (own := self._own()) else None

    @holding.setter
    def holding(self, holding: Holding | None) -> None:
        if own := self._own():
            own.holding = holding

    def _own(self) -> _Own | None:
        inherited = (_context.get() or {}).get(id(self))
        mine = inherited() if inherited else None
        if mine in self._all:
            return mine
        return next((own for own in reversed(self._all) if own.is_orphan), None)


class _Own(_Owned):
    """The acquisition of one coroutine."""

    holding: Holding | None = None

    def __init__(self) -> None:
        self._task = asyncio.current_task()

    @property
    def is_orphan(self) -> bool:
        return self._task is None or self._task.done()


#: The acquisitions of the running coroutine, by the id of the TaskLocal. Weak references keep contexts from holding
#: them alive.
_context: ContextVar[Mapping[int, ref[_Own]] | None] = ContextVar("components_locks", default=None)


class GivenToken(bytes):
    """
    A token that the caller chose. Several acquisitions may use the same token; *asker* distinguishes them.

    It is a subclass of bytes, because redis-py's classes store and compare it.
    """

    asker: bytes

    @classmethod
    def of(cls, token: bytes, asker: bytes) -> GivenToken:
        """Return *token* for the acquisition with the name *asker*."""
        made = cls(token)
        made.asker = asker
        return made


def asker_of(token: bytes) -> bytes:
    """Return the name of the acquisition with this token: the token itself, unless the caller chose it."""
    return token.asker if isinstance(token, GivenToken) else token
