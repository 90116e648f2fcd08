"""
Lock and AsyncLock: drop-in replacements for redis.lock.Lock and redis.asyncio.lock.Lock, from which they derive.

They have everything that redis-py's classes have, under the same names and with the same errors. If the caller passes
`sleep`, redis-py's loop does the waiting. They use the given key unchanged, while lock() makes a key of this app's
keyspace from a name.

A lock is a string with the holder's token, which expires (chapter 6.2 of the book). Other keys are the index of held
locks, with the fences, and a queue of waiters with their heartbeats. A lock that is released while nobody waits
leaves no keys of its own.

The first waiter in the queue is woken. A fair lock goes to that waiter, any other lock to the first client that asks.
"""

import asyncio
import logging
import math
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Literal, Self

from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.asyncio.lock import Lock as RedisAsyncLock
from redis.exceptions import LockError
from redis.lock import Lock as RedisLock

from components.conf import conf
from components.exceptions import LockLost, LockNotAcquired
from components.kit import leases
from components.kit.errors import REDIS_FAILED, redis_errors
from components.kit.leases import BEAT, clock, new_token, tell_waited
from components.kit.scripts import Call, Script, in_turn, popped
from components.kit.sync_async import at_once, cancellations, to_its_end
from components.kit.validation import LONGEST, check_seconds
from components.services.counters import observe, pattern_of, tally, took
from components.services.locks.holding import GivenToken, Holding, Shared, TaskLocal, ThreadLocal, asker_of
from components.services.locks.keys import LockKeys

logger = logging.getLogger(__name__)

#: redis-py's default for `sleep`. Its client.lock() passes it on if the caller gave none, so this value does not
#: select polling.
DEFAULT_SLEEP = 0.1

ACQUIRE, RELEASE = Script("locks/acquire"), Script("locks/release")
EXTEND = Script("locks/extend")


class AnyLock:
    """
    The parts that both classes share, as a mixin. Methods that send commands are coroutines, see kit/sync_async.py.
    """

    redis: Any
    name: Any
    timeout: float | None
    sleep: float
    blocking: bool
    blocking_timeout: float | None
    local: Any
    #: The timeout in milliseconds; 0 for none.
    _ms = 0
    #: Whether it raises this app's errors, instead of redis-py's, when Redis does not answer.
    translates = False
    #: The storage of tokens, which separates the threads or coroutines that share a lock object.
    _own_local: Callable[[], Any]
    #: Returns the event loop of the coroutine that acquires it; None in Lock.
    _loop: Callable[[], asyncio.AbstractEventLoop | None] = staticmethod(lambda: None)
    #: Runs a coroutine to its end; in AsyncLock, the caller awaits it.
    _run: Callable[[Coroutine[Any, Any, Any]], Any] = staticmethod(lambda coroutine: coroutine)
    #: The clients that the lock cannot use, and what the error says of them.
    _foreign: tuple[type, ...]
    _foreign_error: str

    def __init__(
        self,
        redis: Any,
        name: str | bytes | memoryview,
        timeout: float | None = None,
        sleep: float = DEFAULT_SLEEP,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
        *,
        fair: bool = False,
        auto_renewal: bool = False,
        owner: str | None = None,
    ) -> None:
        if isinstance(redis, self._foreign):
            raise TypeError(self._foreign_error)
        of_redis_py: Any = super()
        of_redis_py.__init__(
            redis, name, timeout, sleep, blocking, blocking_timeout, thread_local, raise_on_release_error
        )
        self.local = self._own_local() if thread_local else Shared()
        if self.timeout is not None:
            self._ms = int(check_seconds("timeout", self.timeout) * 1000)
        elif auto_renewal:
            raise ValueError("A lock with auto_renewal needs a timeout, which is what is renewed.")
        self.sleep = check_seconds("sleep", self.sleep, may_be_zero=True)
        self._patience(None, None)
        if fair and self._polls(None):
            raise ValueError("A fair lock waits in its queue: give no sleep.")
        self.keys = LockKeys.of(self.name, self.redis)
        self.fair, self.auto_renewal, self.owner = fair, auto_renewal, owner

    def register_scripts(self) -> None:
        """Do nothing: redis-py would register its scripts here, but this app has its own."""

    def _polls(self, sleep: float | None) -> bool:
        return sleep is not None or self.sleep != DEFAULT_SLEEP

    @property
    def fence(self) -> int:
        """
        Return the fencing token, which is greater than those of all earlier holders. Raises LockError if the lock is
        not held.
        """
        return self._holding.fence

    @property
    def remaining(self) -> float:
        """
        Return the seconds for which the lock is surely still held; infinite without a timeout. Redis is not asked.

        Raises LockError if it is not held.
        """
        return self._holding.remaining

    @property
    def _holding(self) -> Holding:
        holding: Holding | None = self.local.holding
        if holding is None or self.local.token is None:
            raise LockError("The lock is not held here: it was not acquired, or was released.", self.name)
        return holding

    @property
    def _shown_name(self) -> str:
        return LockKeys.name_of(self.keys.lock) or self.keys.lock

    def _patience(self, blocking: bool | None, blocking_timeout: float | None) -> tuple[bool, float | None]:
        """Return whether to wait, and for how long, from the arguments of acquire() and of the lock."""
        blocking = self.blocking if blocking is None else blocking
        patience = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        if patience is None:
            return bool(blocking), None
        if isinstance(patience, int | float) and not isinstance(patience, bool):
            patience = min(max(patience, 0), LONGEST)  # redis-py treats numbers below 0 as 0; NaN stays NaN
        check_seconds("blocking_timeout", patience, may_be_zero=True)
        return bool(blocking) and patience > 0, patience

    def _token_to_release(self) -> bytes:
        token: bytes | None = self.local.token
        if token is None:
            raise LockError(
                "Cannot release a lock that's not owned by this process or is already unlocked.", self.name
            )
        if holding := self.local.holding:
            holding.drop()
        return token

    def _token(self, chosen: str | bytes | None, *, is_coroutine: bool) -> bytes:
        """
        Return the token for an acquisition, by the caller's own choice if there is one. If the outcome of the last
        acquisition is unknown, its token is used again, because it may hold the lock.
        """
        given = None if chosen is None else self.redis.get_encoder().encode(chosen)
        last: bytes | None = self.local.doubtful
        if last is not None and given in (None, last):
            self.local.doubtful = None
            return last
        made = new_token(self.owner, is_coroutine=is_coroutine)
        return made if given is None else GivenToken.of(given, made)

    def _errors(self) -> AbstractContextManager[None]:
        """Return a context that turns redis-py's errors into this app's if lock() made the lock."""
        return redis_errors() if self.translates else nullcontext()

    async def _send(self, script: Script, call: Call) -> Any:
        keys, args = call
        with self._errors():
            return await script.send(self.redis, keys=keys, args=args)

    async def _take(
        self, token: bytes, *, blocking: bool, patience: float | None, wait: float | None = None
    ) -> bool:
        """
        Acquire the lock within *patience* seconds. Return False if that was not possible. *wait* is the result of the
        first try.
        """
        began_at = clock()
        until = math.inf if patience is None else began_at + patience
        cancelled, has_waited, is_granted = cancellations(), False, False
        try:
            wait = await self._try(token, waits=blocking) if wait is None else wait
            if has_waited := blocking and bool(wait):
                tally("locks:waited")
            while wait and cancellations() == cancelled:
                if (left := until - clock()) <= 0 or not blocking:
                    if blocking:
                        await self._leave(token)
                    took("locks-refused", clock() - began_at, of=pattern_of(self._shown_name))
                    return False
                with self._errors():
                    wake = f"{self.keys.wake}:{asker_of(token).decode()}"
                    await popped(self.redis, wake, min(wait, left, BEAT))
                wait = await self._try(token, waits=True, waited=clock() - began_at)
            if cancellations() > cancelled:
                raise asyncio.CancelledError
            is_granted = True
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:
            await self._give_up(token)
            raise
        finally:
            if has_waited:
                waited = clock() - began_at
                observe("locks:wait", waited)
                took("locks-waited", waited, of=pattern_of(self._shown_name))
                tell_waited("lock", self._shown_name, waited, is_granted=is_granted)
        return True

    async def _give_up(self, token: bytes) -> None:
        """Stop waiting, even if the caller is cancelled meanwhile. Keep the token if Redis does not answer."""
        self._forget(token)
        is_known = False

        async def leave() -> None:
            nonlocal is_known
            with suppress(*REDIS_FAILED):
                await self._leave(token)
                is_known = True

        try:
            await to_its_end(leave)
        finally:
            # Not earlier: another coroutine could have used the token to acquire the lock that is given up here.
            if not is_known:
                self.local.doubtful = token

    async def _try(self, token: bytes, *, waits: bool = False, waited: float = 0) -> float:
        """
        Try to acquire the lock. Return 0 if it is held now, else the seconds within which only a wake-up can change
        that.
        """
        asked_at = clock()
        return self._answered(
            await self._send(ACQUIRE, self._acquire_call(token, waits, waited)), token, asked_at
        )

    def _acquire_call(self, token: bytes, waits: bool, waited: float = 0) -> Call:
        return ACQUIRE.call(
            self.keys,
            token=token,
            asker=asker_of(token),
            ttl=self._ms,
            life=leases.ALIVE,
            fair=int(self.fair),
            waits=int(waits),
            waited=round(waited * 1e6),
        )

    def _answered(self, said: tuple[int, int], token: bytes, asked_at: float) -> float:
        fence, left = said
        if fence:
            self._begin(token, fence, asked_at + left / 1000 if left >= 0 else math.inf)
            return 0.0
        return max(left, 1) / 1000 if left >= 0 else math.inf

    async def _leave(self, token: bytes) -> None:
        """Leave the queue, and release the lock if it was acquired but the reply was lost."""
        await self._send(RELEASE, self._release_call(token, 0, "left"))

    def _begin(self, token: bytes, fence: int, valid_until: float) -> None:
        tally("locks:acquired")
        if former := self.local.holding:
            former.drop()
        self.local.token = token
        self.local.holding = holding = Holding(self, token, fence, valid_until, self._loop())
        if self.auto_renewal:
            holding.keep()

    async def _give_back(self, token: bytes) -> None:
        if not await self._send(RELEASE, self._release_call(token)):
            self._forget(token)
            raise self._loss("Cannot release a lock that's no longer owned")

    def _release_call(self, token: bytes, fence: int | None = None, reason: str = "released") -> Call:
        """Return a call of release.lua. *fence* defaults to that of the lock held here."""
        if fence is None:
            holding: Holding | None = self.local.holding
            fence = holding.fence if holding and holding.token == token else 0
        return RELEASE.call(self.keys, token=token, asker=asker_of(token), fence=fence, reason=reason)

    def do_extend(self, additional_time: float, replace_ttl: bool) -> Any:
        sign = -1 if isinstance(additional_time, int | float) and additional_time < 0 else 1
        seconds = -additional_time if sign < 0 else additional_time
        milliseconds = sign * int(check_seconds("additional_time", seconds, may_be_zero=True) * 1000)
        return self._run(
            self._set_time_or_raise("extend", milliseconds, "replaces" if replace_ttl else "adds")
        )

    def do_reacquire(self) -> Any:
        return self._run(self._set_time_or_raise("reacquire", self._ms, "anew"))

    async def _set_time_or_raise(self, verb: str, milliseconds: int, how: str) -> Literal[True]:
        if not await self._set_time(milliseconds, how):
            raise self._loss(f"Cannot {verb} a lock that's no longer owned")
        return True

    async def _prolong(self, holding: Holding) -> bool:
        """Restart the time of the lock, whichever thread holds it. Return False if it is lost."""
        return await self._set_time(self._ms, "anew", holding)

    async def _set_time(self, milliseconds: int, how: str, holding: Holding | None = None) -> bool:
        """
        Set the time of the lock to *milliseconds* from now ("replaces", "anew"), or add them ("adds"). If no time is
        left, the lock is over. Return False if it is lost, or if it has no end and *how* is not "anew".
        """
        asked_at, token = clock(), holding.token if holding else self.local.token
        request = os.urandom(8).hex() if how == "adds" or milliseconds <= 0 else ""
        call = EXTEND.call(
            self.keys, token=token, asker=asker_of(token), milliseconds=milliseconds, request=request, how=how
        )
        left: int = await self._send(EXTEND, call)
        holding = holding or self.local.holding
        if left >= 0 and holding and holding.token == token:
            holding.valid_until = asked_at + left / 1000
        return left >= 0

    async def _ensure_held(self) -> None:
        holding = self._holding
        if holding.remaining:
            encoded = self.redis.get_encoder().encode  # a client that decodes returns text
            with self._errors():
                stored = await in_turn(self.redis.get(self.name))
                is_held = stored is not None and encoded(stored) == holding.token
                # Another acquisition may have the same token if the caller chose it.
                if is_held and isinstance(holding.token, GivenToken):
                    by = await in_turn(self.redis.hget(self.keys.state, "by")) or ""
                    is_held = encoded(by) == holding.token.asker
            if is_held:
                return
        holding.drop()
        holding.lose()
        raise self._loss("The lock is no longer owned")

    def _forget(self, token: bytes) -> None:
        """Record that the lock is no longer held, unless the same thread has acquired it again meanwhile."""
        if self.local.token == token:
            if holding := self.local.holding:
                holding.drop()
                if conf().count_services:
                    took("locks-held", clock() - holding.began_at, of=pattern_of(self._shown_name))
            self.local.token = None
            self.local.holding = None

    def _loss(self, what: str) -> LockLost:
        tally("locks:lost")
        return LockLost(
            f"{what}: the time of {self.name!r} ran out, or it was released by force. "
            "Another holder may have it now. Writes that it protects need its fence.",
            self.name,
        )


class Lock(AnyLock, RedisLock):
    """
    A lock at the key *name* of the client *redis*, for threads and processes: redis.lock.Lock with more features.

    *timeout* is how many seconds it can be held (None: no limit). *auto_renewal* restarts the timeout after each
    third of it, until release(). acquire() waits for up to *blocking_timeout* seconds (None: no limit); a release
    wakes it, unless *sleep* is given: then it tries every *sleep* seconds. A *fair* lock goes to waiters in order of
    arrival. *owner* is a text for people to read.

    extend() adds seconds, or takes negative ones away; reacquire() restarts the timeout. A lock without time is lost.
    As a context manager, it returns itself or raises LockNotAcquired. A lock that is no longer held raises LockLost,
    a subclass of redis-py's LockNotOwnedError. Raises InvalidName, InvalidValue, TypeError or ValueError for
    invalid arguments.
    """

    _own_local = ThreadLocal
    _run = staticmethod(at_once)
    _foreign = (AsyncRedis, AsyncRedisCluster)
    _foreign_error = "The client of a Lock must not be asynchronous. Use AsyncLock for this client."

    def __enter__(self) -> Self:
        if self.acquire():
            return self
        raise LockNotAcquired(f"The lock {self.name!r} was not free in time.", self.name)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.release()
        except REDIS_FAILED as problem:
            if self.raise_on_release_error and error is None:
                raise
            logger.warning("A lock could not be released at the end of its block: %s", problem)

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: str | bytes | None = None,
    ) -> bool:
        """
        Acquire the lock. Return whether it is held now. A *token* of the caller's own must differ from all others in
        use.

        Raises redis-py's errors, or RedisUnavailable if lock() made it. After these, the lock is not held, or the
        next call finds that it is.
        """
        blocking, patience = self._patience(blocking, blocking_timeout)
        own = self._token(token, is_coroutine=False)
        # acquire(False) and acquire(True), which redis-py takes for 0 and 1 second, wait for a wake-up instead.
        if sleep is not None:
            sleep = None if isinstance(sleep, bool) else check_seconds("sleep", sleep, may_be_zero=True)
        try:
            if self._polls(sleep):
                return bool(super().acquire(sleep, blocking, patience, own))  # type: ignore[arg-type]
            asked_at = clock()
            said = ACQUIRE.quick(self.redis, *self._acquire_call(own, blocking))  # suffices for most calls
            wait = self._answered(said, own, asked_at) if said else None
        except BaseException:  # it may be held
            at_once(self._give_up(own))
            raise
        return wait == 0 or at_once(self._take(own, blocking=blocking, patience=patience, wait=wait))

    def do_acquire(self, token: Any) -> bool:
        """Try once to acquire the lock, for redis-py's loop."""
        return not at_once(self._try(token))

    def locked(self) -> bool:
        """Return whether anybody holds it."""
        with self._errors():
            return super().locked()

    def owned(self) -> bool:
        """Return whether this thread holds it."""
        with self._errors():
            return super().owned()

    def release(self) -> None:
        """
        Release the lock. Raises LockError if it is not held here, LockLost if it is no longer held.

        After redis-py's errors or RedisUnavailable, the call may be repeated.
        """
        token = self._token_to_release()
        self.do_release(token)
        self._forget(token)

    def do_release(self, expected_token: Any) -> None:
        if not RELEASE.quick(self.redis, *self._release_call(expected_token)):
            at_once(self._give_back(expected_token))

    def ensure_held(self) -> None:
        """
        Ask Redis whether the lock is held. Raises LockError if it is not held here, LockLost if it is no longer held.
        """
        at_once(self._ensure_held())

    @property
    def lost(self) -> threading.Event:
        """An event, set when a renewal finds it lost or its time is over. Raises LockError if it is not held."""
        lost: threading.Event = self._holding.lost
        return lost


class AsyncLock(AnyLock, RedisAsyncLock):
    """
    A lock for coroutines: redis.asyncio.lock.Lock with more features. The arguments are those of Lock.

    Many coroutines may share one object. Each has its own token (holding.py), while redis-py's class lets one
    coroutine release the lock of another.
    """

    _own_local = TaskLocal
    _loop = staticmethod(asyncio.get_running_loop)
    _foreign = (Redis, RedisCluster)
    _foreign_error = "The client of an AsyncLock must be asynchronous. Use Lock for this client."

    async def __aenter__(self) -> Self:
        if await self.acquire():
            return self
        raise LockNotAcquired(f"The lock {self.name!r} was not free in time.", self.name)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await self.release()
        except REDIS_FAILED as problem:
            if self.raise_on_release_error and error is None:
                raise
            logger.warning("A lock could not be released at the end of its block: %s", problem)

    async def acquire(
        self,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: str | bytes | None = None,
    ) -> bool:
        """Acquire the lock, as Lock.acquire() does."""
        blocking, patience = self._patience(blocking, blocking_timeout)
        own = self._token(token, is_coroutine=True)
        if not self._polls(None):
            return await self._take(own, blocking=blocking, patience=patience)
        try:
            return bool(await super().acquire(blocking, patience, own))
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:  # it may be held
            await self._give_up(own)
            raise

    async def do_acquire(self, token: Any) -> bool:
        """Try once to acquire the lock, for redis-py's loop."""
        cancelled = cancellations()
        is_taken = not await self._try(token)
        if cancellations() > cancelled:
            raise asyncio.CancelledError
        return is_taken

    async def locked(self) -> bool:
        """Return whether anybody holds it."""
        with self._errors():
            return await super().locked()

    async def owned(self) -> bool:
        """Return whether this coroutine holds it."""
        with self._errors():
            return await super().owned()

    async def release(self) -> None:
        """
        Release the lock, as Lock.release() does. If the caller is cancelled, even repeatedly, the lock is still
        released before CancelledError is raised. If Redis did not answer, the call may be repeated.
        """
        token = self._token_to_release()
        await to_its_end(lambda: self._release(token))

    async def _release(self, token: bytes) -> None:
        await self.do_release(token)
        self._forget(token)

    async def do_release(self, expected_token: Any) -> None:
        await self._give_back(expected_token)

    async def ensure_held(self) -> None:
        """Ask Redis whether the lock is held, as Lock.ensure_held() does."""
        await self._ensure_held()

    @property
    def lost(self) -> asyncio.Event:
        """An event, set when a renewal finds it lost or its time is over. Raises LockError if it is not held."""
        lost: asyncio.Event = self._holding.lost
        return lost
