"""
What Lock and AsyncLock have in common: keys, scripts, waiting. Each method that asks Redis is a coroutine (twins.py).

A lock is a string with the holder's token, which expires (chapter 6.2 of the book), and beside it: the bucket's index
of what is held, with the fences, and a queue of waiters with their heartbeats. What was released cleanly while nobody
waited leaves nothing of its own. Waiting is blocking on a list
of the waiter's own; a wake-up carries no data, the waiter tries again. It also looks at each heartbeat and when the
holder's time ends, so a lost wake-up, or a waiter or holder that was killed, costs a moment and nothing else. The
first in the queue is woken; of a fair lock it is the next, of another whoever comes first.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

from redis.exceptions import LockError

from components.exceptions import LockLost, NotReplicated
from components.kit.at_once import answer, cancellations
from components.kit.client import SHORTEST_BLOCK, longest_block
from components.kit.errors import REDIS_FAILED, redis_errors
from components.kit.holders import new_token
from components.kit.leases import clock
from components.kit.scripts import Call, Script
from components.kit.values import LONGEST, check_seconds
from components.services.counters import tally
from components.services.locks.holdings import Holding
from components.services.locks.keys import LockKeys
from components.services.locks.replicas import send_and_wait
from components.services.locks.tokens import GivenToken, asker_of

#: redis-py's default for `sleep`. Its client.lock() passes it on where nobody gave one, so it asks for nothing.
DEFAULT_SLEEP = 0.1
BEAT = 0.4  # seconds between two heartbeats of a waiter
_ALIVE = 800_000  # microseconds after a heartbeat in which a waiter keeps its place: two beats

ACQUIRE, RELEASE = Script("locks/acquire"), Script("locks/release")
EXTEND = Script("locks/extend")


def plain(seconds: Any) -> Any:
    """Return *seconds* as a float if it is a Decimal or a Fraction, which redis-py takes as well."""
    if isinstance(seconds, Decimal):
        return math.nan if seconds.is_nan() else float(seconds)
    return float(seconds) if isinstance(seconds, Fraction) else seconds


def milliseconds_to_add(seconds: Any) -> int:
    """Return what extend() was given, which may be less than none. Raises InvalidDuration."""
    number = plain(seconds)
    if isinstance(number, int | float) and not isinstance(number, bool):
        check_seconds("additional_time", abs(number), may_be_zero=True)
    else:
        check_seconds("additional_time", number)
    return int(number * 1000)


def _spellings(stored: bytes) -> tuple[bytes, str]:
    """Return what a client may answer for these bytes; one that decodes answers text."""
    return stored, stored.decode("latin-1")


class LockCore:
    """The part that is the same; a mixin for the classes that derive from redis-py's."""

    redis: Any
    name: Any
    timeout: float | None
    sleep: float
    blocking: bool
    blocking_timeout: float | None
    local: Any
    #: Its timeout in milliseconds; 0 for ever.
    _ms = 0
    #: Whether it raises this app's errors where Redis does not answer, not redis-py's.
    translates = False
    _keep: Callable[[Holding], None]
    _drop: Callable[[Holding], None]

    def _configure(self, *, fair: bool, auto_renewal: bool, owner: str | None, min_replicas: int) -> None:
        """Check what was given. Raises InvalidName, InvalidDuration or ValueError."""
        if self.timeout is not None:
            self._ms = int(check_seconds("timeout", plain(self.timeout)) * 1000)
        elif auto_renewal:
            raise ValueError("A lock with auto_renewal needs a timeout: it is what is renewed.")
        self.sleep = check_seconds("sleep", plain(self.sleep), may_be_zero=True)
        self._patience(None, None)
        if fair and self._polls(None):
            raise ValueError("A fair lock waits in its queue: give no sleep.")
        self.keys = LockKeys.of(self.name, self.redis)
        self.fair, self.auto_renewal, self.owner, self.min_replicas = fair, auto_renewal, owner, min_replicas
        self._longest_block = 0.0

    def _polls(self, sleep: float | None) -> bool:
        """Whether the caller has asked to look again and again."""
        return sleep is not None or self.sleep != DEFAULT_SLEEP

    @property
    def fence(self) -> int:
        """The fencing token: greater than of all who held the lock before. Raises LockError if it is not held."""
        return self._holding.fence

    @property
    def remaining(self) -> float:
        """Seconds for which it is surely held yet, told without asking Redis. Raises LockError if it is not held."""
        return self._holding.remaining

    @property
    def _holding(self) -> Holding:
        holding: Holding | None = self.local.holding
        if holding is None or self.local.token is None:
            raise LockError("The lock is not held here: it was not acquired, or is released.", self.name)
        return holding

    def _patience(self, blocking: bool | None, blocking_timeout: float | None) -> tuple[bool, float | None]:
        """Whether to wait, and how long, from what acquire() was given and what the lock was made with."""
        blocking = self.blocking if blocking is None else blocking
        patience = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        if patience is None:
            return bool(blocking), None
        patience = plain(patience)
        if isinstance(patience, int | float) and not isinstance(patience, bool):
            patience = min(max(patience, 0), LONGEST)  # as with redis-py, less than none is none; a NaN stays
        check_seconds("blocking_timeout", patience, may_be_zero=True)
        return bool(blocking) and patience > 0, patience

    def _token_to_release(self) -> bytes:
        token: bytes | None = self.local.token
        if token is None:
            raise LockError("Cannot release a lock that's not owned or is already unlocked.", self.name)
        if holding := self.local.holding:
            self._drop(holding)
        return token

    def _token_to_extend(self, verb: str) -> bytes:
        token: bytes | None = self.local.token
        if token is None:
            raise LockError(f"Cannot {verb} an unlocked lock", self.name)
        if self.timeout is None:
            raise LockError(f"Cannot {verb} a lock with no timeout", self.name)
        return token

    def _token(self, given: bytes | None, *, is_coroutine: bool) -> bytes:
        """
        Return the token for an acquisition; *given* is what the caller chose.

        It is the last one where it is unknown what became of that, since that one may hold the lock.
        """
        last: bytes | None = self.local.doubtful
        if last is not None and given in (None, last):
            self.local.doubtful = None
            return last
        made = new_token(self.owner, is_coroutine=is_coroutine)
        return made if given is None else GivenToken.of(given, made)

    def _errors(self) -> AbstractContextManager[None]:
        """What turns redis-py's errors into this app's, if the lock is one of this app's."""
        return redis_errors() if self.translates else nullcontext()

    async def _send(self, script: Script, call: Call) -> Any:
        keys, args = call
        with self._errors():
            return await script.send(self.redis, keys=keys, args=args)

    async def _take(
        self, token: bytes, *, blocking: bool, patience: float | None, wait: float | None = None
    ) -> bool:
        """Acquire, waiting for *patience* seconds; *wait* is the answer to a first try."""
        began_at = clock()
        until = math.inf if patience is None else began_at + patience
        cancelled = cancellations()
        try:
            wait = await self._try(token, waits=blocking) if wait is None else wait
            if blocking and wait:
                tally("locks:waited")
            while wait and cancellations() == cancelled:
                if not blocking:
                    return False
                if (left := until - clock()) <= 0:
                    await self._leave(token)
                    return False
                await self._wait(token, min(wait, left))
                wait = await self._try(token, waits=True, waited=clock() - began_at)
            if cancellations() > cancelled:
                raise asyncio.CancelledError
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:
            await self._give_up(token)
            raise
        return True

    async def _give_up(self, token: bytes) -> None:
        """Leave, also if the caller is cancelled meanwhile, and remember the token if that was not answered."""
        self._forget(token)
        is_known = False

        async def leave() -> None:
            nonlocal is_known
            with suppress(*REDIS_FAILED):
                await self._leave(token)
                is_known = True

        try:
            await self._to_its_end(leave)
        finally:
            if not is_known:  # only now: before, another coroutine could acquire with it what is left here
                self.local.doubtful = token

    async def _to_its_end(self, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Await what *start* returns. AsyncLock does so even if it is cancelled."""
        await start()

    async def _try(self, token: bytes, *, waits: bool = False, waited: float = 0) -> float:
        """Acquire it if that can be; else the seconds in which nothing changes without a wake-up."""
        asked_at = clock()
        call = self._acquire_call(token, waits, waited)
        if self.min_replicas:
            said = await self._try_replicated(token, call)
        else:
            said = await self._send(ACQUIRE, call)
        return self._answered(said, token, asked_at)

    def _acquire_call(self, token: bytes, waits: bool, waited: float = 0) -> Call:
        return ACQUIRE.call(
            self.keys,
            token=token,
            asker=asker_of(token),
            ttl=self._ms,
            life=_ALIVE if waits else 0,
            fair=int(self.fair),
            waited=round(waited * 1e6),
        )

    def _answered(self, said: tuple[int, int], token: bytes, asked_at: float) -> float:
        fence, left = said
        if fence:
            self._begin(token, fence, asked_at + left / 1000 if left >= 0 else math.inf)
            return 0.0
        return max(left, 1) / 1000 if left >= 0 else math.inf

    async def _try_replicated(self, token: bytes, call: Call) -> tuple[int, int]:
        with self._errors():
            said, copies = await send_and_wait(self.redis, ACQUIRE, call, replicas=self.min_replicas)
        fence, left = said
        if fence and copies < self.min_replicas:
            await self._send(RELEASE, self._release_call(token, fence))
            raise NotReplicated(
                f"The lock {self.name!r} reached {copies} of {self.min_replicas} replicas, and was given back. "
                "Look whether the replicas are there and follow, or ask for fewer."
            )
        return fence, left

    async def _wait(self, token: bytes, seconds: float) -> None:
        """Until woken, or for *seconds*, or until the next heartbeat is due."""
        self._longest_block = self._longest_block or min(BEAT, longest_block(self.redis))
        timeout = max(SHORTEST_BLOCK, min(seconds, self._longest_block))
        with self._errors():
            await answer(self.redis.blpop([f"{self.keys.wake}:{asker_of(token).decode()}"], timeout=timeout))

    async def _leave(self, token: bytes) -> None:
        """Wait no longer; what was acquired without learning of it is given back."""
        await self._send(RELEASE, self._release_call(token, 0, "left"))

    def _begin(self, token: bytes, fence: int, valid_until: float) -> None:
        """It is held."""
        tally("locks:acquired")
        if former := self.local.holding:
            self._drop(former)
        self.local.token = token
        self.local.holding = holding = Holding(self, token, fence, valid_until)
        if self.auto_renewal:
            self._keep(holding)

    async def _give_back(self, token: bytes) -> None:
        if not await self._send(RELEASE, self._release_call(token)):
            raise self._loss("Cannot release a lock that's no longer owned")

    def _release_call(self, token: bytes, fence: int | None = None, reason: str = "released") -> Call:
        """Return a call of release.lua; the fence is that of what is held here, unless it is given."""
        if fence is None:
            holding: Holding | None = self.local.holding
            fence = holding.fence if holding and holding.token == token else 0
        return RELEASE.call(self.keys, token=token, asker=asker_of(token), fence=fence, reason=reason)

    async def _extend(self, token: bytes, milliseconds: int, how: str) -> bool:
        """
        Give it *milliseconds* to live from now ("replaces", "anew"), or more than it has ("adds").

        Return False if it is lost, or has no end, unless it is to begin anew. With none left its time is over.
        """
        asked_at = clock()
        request = os.urandom(8).hex() if how == "adds" or milliseconds <= 0 else ""
        left: int = await self._send(EXTEND, self._extend_call(token, milliseconds, how, request))
        holding: Holding | None = self.local.holding
        if left >= 0 and holding and holding.token == token:
            holding.valid_until = asked_at + left / 1000
        return left >= 0

    def _extend_call(self, token: bytes, milliseconds: int, how: str, request: str = "") -> Call:
        asker = asker_of(token)
        return EXTEND.call(
            self.keys, token=token, asker=asker, milliseconds=milliseconds, request=request, how=how
        )

    async def _prolong(self, holding: Holding) -> bool:
        """Renew it, for whoever holds it."""
        asked_at = clock()
        left: int = await self._send(EXTEND, self._extend_call(holding.token, self._ms, "anew"))
        if left >= 0:
            holding.valid_until = asked_at + left / 1000
        return left >= 0

    async def _ensure_held(self) -> None:
        holding = self._holding
        if holding.remaining:
            with self._errors():
                stored = await answer(self.redis.get(self.name))
                is_held = stored in _spellings(holding.token)
                # Another acquisition may have the same token, if the caller chose it.
                if is_held and isinstance(holding.token, GivenToken):
                    by = await answer(self.redis.hget(self.keys.state, "by"))
                    is_held = by in _spellings(asker_of(holding.token))
            if is_held:
                return
        self._drop(holding)
        holding.lose()
        raise self._loss("The lock is no longer owned")

    def _forget(self, token: bytes) -> None:
        """It is held no longer, unless the same thread has acquired it anew meanwhile."""
        if self.local.token == token:
            if holding := self.local.holding:
                self._drop(holding)
            self.local.token = None
            self.local.holding = None

    def _loss(self, what: str) -> LockLost:
        tally("locks:lost")
        return LockLost(
            f"{what}: the time of {self.name!r} ran out, or it was released by force. "
            "Another may hold it now; what was written under it needs its fence.",
            self.name,
        )
