"""
TaskQueue: the queues of one backend alias, for code that pushes tasks and for the control room.

A push is one script for up to CHUNK tasks in any queues. It can be repeated if its reply was lost, because the ids
are made here, and a task whose record or result exists is not stored again. Later actions on tasks are one script for
up to CHUNK ids, and can be repeated as well. A running task is never taken from its worker, which finds a
cancellation with its next heartbeat. Counts are cardinalities of sorted sets and pages are ranges: one to three round
trips, whatever the size of a queue.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from math import inf, isinf, isnan
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.signals import setting_changed

from components.conf import QueueOptions, functions, queue_options
from components.exceptions import InvalidValue
from components.kit.client import AnyRedis, get_client
from components.kit.decoding import instant_of, text_of
from components.kit.errors import redis_errors
from components.kit.ids import id_of, new_call
from components.kit.scripts import ASYNCHRONOUS, Script, in_turn, pipelined, popped
from components.kit.sync_async import at_once, both
from components.kit.validation import check_int, check_seconds, check_several, is_name
from components.services.counters import tally, tally_each
from components.services.queues.chains import enqueue_through
from components.services.queues.facts import (
    Cancelled,
    Look,
    QueueStats,
    Resent,
    State,
    TaskInfo,
    WorkerInfo,
    from_us,
    read_instant,
    to_us,
)
from components.services.queues.formats import (
    placed,
    queue_of,
    read_result,
    read_row,
    read_sizes,
    read_task,
    read_worker,
    state_of,
)
from components.services.queues.keys import BackendKeys, QueueKeys
from components.services.queues.new_task import CheckedTask, NewTask, check_queue, ticks_of
from components.services.queues.ticks import warn_of_jump

_LATEST_FIRST = ("dead", "successful")  # the states whose listing begins with the latest
CHUNK = 500  # tasks in one call of a script: a few milliseconds of Redis, far below Lua's limits
_LOOK = 1_000  # tasks that a look reads in one round trip
_TOLD = 60_000  # milliseconds within which waiting callers must notice the end of a task
_ORDERED = 86_400_000  # milliseconds for which a request to a worker is kept

AWAIT = Script("queues/await")
CANCEL = Script("queues/cancel")
DELETE = Script("queues/delete")
ENQUEUE = Script("queues/enqueue")
FIND = Script("queues/find")
PAUSE = Script("queues/pause")
PROMOTE = Script("queues/promote")
PUSH = Script("queues/push")
RESEND = Script("queues/resend")
STATS = Script("queues/stats")
TELL = Script("queues/tell")
WAKE = Script("queues/wake")

_T = TypeVar("_T")
#: Ids of tasks; each may be a UUID, or its text with dashes.
TaskIds: TypeAlias = Collection[str | UUID]


class TaskQueue:
    """
    The queues behind TASKS[*alias*].

    Every method raises RedisUnavailable when Redis does not answer. Then the call either had no effect or its full
    effect, and may be repeated.
    """

    def __init__(self, alias: str = "default") -> None:
        self.alias = alias

    @property
    def options(self) -> QueueOptions:
        return queue_options(self.alias)

    @property
    def _keys(self) -> BackendKeys:
        return BackendKeys(self.alias)  # built at each use, because the key prefix is a setting

    def _keys_of(self, queue: str) -> QueueKeys:
        return QueueKeys(self.alias, queue)

    async def _push(
        self,
        client: AnyRedis,
        name: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        queue: str = "default",
        priority: int = 0,
        delay: float | None = None,
        at: datetime | None = None,
        expires: float | datetime | None = None,
    ) -> str:
        """
        Push the task *name*, the dotted path of a function declared with @task, and return its id.

        It runs now, after *delay* seconds or *at* an aware datetime. Within a queue, tasks of higher *priority*
        (-100..100) go first, then those that became runnable first. If it has not started *expires* seconds after it
        could run first, or by that instant, it is dropped. Raises NotSerializable, BodyTooLarge,
        InvalidName or ValueError; then nothing is stored.
        """
        task = NewTask(
            name=name,
            args=args,
            kwargs=kwargs or {},
            queue=queue,
            priority=priority,
            delay=delay,
            at=at,
            expires=expires,
        )
        [info] = await self._push_many(client, [task])
        assert info is not None, "only a tick that was taken is not stored"
        return info.id

    push, apush = both(_push)

    async def _push_many(self, client: AnyRedis, tasks: Iterable[NewTask]) -> list[TaskInfo | None]:
        """
        Push all *tasks*, in one round trip for each CHUNK, and return them as they were stored.

        All are checked before the first is stored. If another task has the unique key of a task, the other task is
        returned in its place. A tick that was already taken is returned as None. Raises the same errors as push().
        """
        if not functions("enqueue_middleware"):
            return await self._store_many(client, tasks)
        if isinstance(client, ASYNCHRONOUS):  # middleware are ordinary functions
            return await sync_to_async(self.push_many)(list(tasks))
        return enqueue_through(tasks, self.store_many)

    push_many, apush_many = both(_push_many)

    async def _store_many(self, client: AnyRedis, tasks: Iterable[NewTask]) -> list[TaskInfo | None]:
        """Push all *tasks*, as push_many() does, without the middleware around enqueueing."""
        options, found = self.options, list[TaskInfo | None]()
        checked = [CheckedTask(task, options) for task in tasks]
        if len(checked) == 1 and checked[0].is_plain:
            return [await self._enqueue(client, checked[0])]
        for chunk in _chunks(checked):
            numbers: dict[str, int] = {}
            for new in chunk:
                new.number = numbers.setdefault(new.queue, len(numbers) + 1)
            answers, ahead = await PUSH.run(
                client,
                self._keys,
                queues=[self._keys_of(queue) for queue in numbers],
                due_first=int(options.due_first),
                pushed=chunk,
                ticks=ticks_of(chunk),
            )
            for name, last in zip(ahead[::2], ahead[1::2], strict=True):
                warn_of_jump(name.decode(), read_instant(last))
            stored = [said.isdigit() for said in answers]
            tally_each(
                "tasks:enqueued", [new.queue for new, is_new in zip(chunk, stored, strict=True) if is_new]
            )
            for new, said, is_new in zip(chunk, answers, stored, strict=True):
                found.append(new.stored(from_us(said)) if is_new else await self._other(client, new, said))
        return found

    store_many, astore_many = both(_store_many)

    async def _enqueue(self, client: AnyRedis, new: CheckedTask) -> TaskInfo:
        """
        Push one plain task (is_plain), without the middleware around enqueueing.

        Most tasks are plain, and this is the fastest path. Raises RedisUnavailable.
        """
        keys = _keys_to_enqueue(self.alias, new.queue)
        args = ENQUEUE.contract.args_of(
            {
                "id": new.id,
                "queue": new.queue,
                "priority": new.priority,
                "due_first": int(self.options.due_first),
                "body": new.body,
            }
        )
        said = await ENQUEUE.acall(client, keys=keys, args=args)
        tally("tasks:enqueued", of=new.queue)
        return new.stored(from_us(said))

    enqueue, aenqueue = both(_enqueue)

    async def _other(self, client: AnyRedis, new: CheckedTask, said: bytes) -> TaskInfo | None:
        """Return the task that has the unique key of *new*. If that has ended and is gone meanwhile, push *new*."""
        if not said:
            return None
        return await self._get(client, said[1:].decode()) or (await self._store_many(client, [new.task]))[0]

    def foresee(self, tasks: Iterable[NewTask]) -> list[TaskInfo]:
        """Check *tasks* as push_many() does. Return them as they would be stored now, by this machine's clock."""
        now = datetime.now(UTC)
        return [CheckedTask(task, self.options).stored(now) for task in tasks]

    def pause(self, queue: str) -> bool:
        """Pause *queue*: no worker claims from it until resume(), but pushes go on. Return False if it was paused."""
        check_queue(queue)
        call = new_call()
        return bool(at_once(PAUSE.run(get_client(), self._keys, queue=queue, call=call)))

    def resume(self, queue: str) -> bool:
        """Resume *queue*, so that workers claim from it again, and wake one. Return False if it was not paused."""
        # No transaction, because a server that is out of memory accepts none, and the queue could not be drained.
        client = get_client()
        with redis_errors():
            resumed = client.srem(self._keys.paused, queue)
        at_once(WAKE.run(client, self._keys_of(queue), life=0))
        return bool(resumed)

    def cancel(self, queue: str | TaskIds, task_ids: TaskIds | None = None) -> Cancelled:
        """
        Cancel tasks: cancel("mail", ids) those of a queue, cancel(ids) of any, which takes a second round trip.

        Waiting tasks become dead, with TaskCancelled as their error. Running coroutines are cancelled with the next
        heartbeat of their worker, and running functions learn of it from is_cancelled(). A running task that succeeds
        nevertheless counts as successful.
        """
        said: list[bytes] = []
        for keys, ids in self._located(queue, task_ids):
            said += at_once(CANCEL.run(get_client(), keys, ids=ids))
        return Cancelled(said.count(b"cancelled"), said.count(b"cancelling"))

    def delete(
        self, queue: str | TaskIds, state: State | None = None, task_ids: TaskIds | None = None
    ) -> int:
        """
        Delete tasks with their results: delete("mail", "dead", ids) those in one state, delete(ids) all but running
        ones. Return how many of them do not exist now.

        Raises ValueError for the state "running": cancel such tasks.
        """
        if state == "running":
            raise ValueError("A running task cannot be deleted. Cancel it, and delete it when it is dead.")
        located = self._located(queue, task_ids)
        return sum(
            at_once(DELETE.run(get_client(), keys, state=state or "", ids=ids)) for keys, ids in located
        )

    def resend(self, queue: str | TaskIds, task_ids: TaskIds | None = None) -> Resent:
        """Send dead tasks again, as cancel() names them: now, with all their attempts. Their errors stay."""
        sent, refused = 0, list[str]()
        for keys, ids in self._located(queue, task_ids):
            held, number = at_once(RESEND.run(get_client(), keys, queue=keys.queue, ids=ids))
            sent += int(number)
            refused += [task_id.decode() for task_id in held]
        return Resent(sent, refused)

    def promote(self, queue: str | TaskIds, task_ids: TaskIds | None = None) -> int:
        """Make delayed tasks due, as cancel() names them, so that workers take them. Return how many are due."""
        located = self._located(queue, task_ids)
        return sum(at_once(PROMOTE.run(get_client(), keys, ids=ids)) for keys, ids in located)

    def _located(
        self, queue: str | TaskIds, task_ids: TaskIds | None
    ) -> Iterator[tuple[QueueKeys, Sequence[str]]]:
        """Yield queues, each with up to CHUNK of the ids. If no queue is named, those of the ids are looked up."""
        ids = [*map(id_of, check_several("ids", queue if task_ids is None else task_ids))]
        by_queue = defaultdict[str, list[str]](list)
        if isinstance(queue, str):
            by_queue[queue] = ids
        else:
            find = partial(FIND.put, keys=self._keys)
            answers = at_once(pipelined(get_client(), ids, lambda pipe, id: find(pipe, id=id)))
            for task_id, (record, *_, result) in zip(ids, answers, strict=True):
                if stored := record or result:
                    by_queue[queue_of(stored)].append(task_id)
        for name, those in by_queue.items():
            yield from ((self._keys_of(name), chunk) for chunk in _chunks(those))

    def tell(self, worker_id: str, order: Literal["quiet", "stop"]) -> None:
        """Ask a worker to claim no more tasks, or to stop after its running tasks. It obeys at its next heartbeat."""
        at_once(TELL.run(get_client(), self._keys, worker_id=worker_id, said=order, kept=_ORDERED))

    async def _wait_for(self, client: AnyRedis, task_id: str, *, wait: float) -> TaskInfo | None:
        """
        Return the task when it has ended (state "successful" or "dead"), or in its state after *wait* seconds.

        Return None if the task does not exist, or not any more. The call blocks one connection and does not poll.
        """
        task_id = id_of(task_id)
        wait = 0.0 if isinstance(wait, int | float) and wait < 0 else wait
        until = time.monotonic() + check_seconds("wait", wait, may_be_zero=True)
        ended = self._keys.ended(task_id)
        token = None
        while True:
            # Only for a task that has not ended: this process may die, and only the end of the task removes the note.
            await AWAIT.run(client, self._keys, id=task_id)
            info = await self._get(client, task_id)
            has_ended = info is None or info.state in ("successful", "dead")
            left = until - time.monotonic()
            with redis_errors():
                if has_ended and token:  # wake the next caller that waits for the same task
                    await WAKE.acall(client, keys=[ended], args=[_TOLD])
                if has_ended or left <= 0:
                    return info
                # A token from an earlier end, before the task was sent again, is dropped.
                token = await popped(client, ended, left)

    wait_for, await_for = both(_wait_for)

    async def _get(self, client: AnyRedis, task_id: str) -> TaskInfo | None:
        """
        Return one task, or None if it was never pushed, or if its result has expired.

        Raises UnknownFormat if a newer release wrote it, ValueError if it is not a task.
        """
        task_id = id_of(task_id)
        if not is_name(task_id):
            return None
        record, run, errors, progress, result = await FIND.run(client, self._keys, id=task_id)
        if result:
            return read_result(task_id, result)
        if not record:
            return None
        info = read_task(task_id, state_of(run), record, run, errors, progress)
        if info.state == "dead":
            return info
        keys = self._keys_of(info.queue)
        with redis_errors():
            pipe = client.pipeline(transaction=False)
            pipe.zscore(keys.delayed, info.id)
            pipe.zscore(keys.running, info.id)
            due_us, ends_ms = await in_turn(pipe.execute())
        return placed(info, due_us=due_us, ends_ms=ends_ms)

    get, aget = both(_get)

    def names(self) -> list[str]:
        """Return, sorted, the queues that may have waiting or running tasks. Workers of all queues ask these."""
        return self._members(self._keys.active)

    def all_names(self) -> list[str]:
        """Return the sorted names of queues that have a task in any state or are paused."""
        return self._members(self._keys.names)

    def _members(self, key: str) -> list[str]:
        with redis_errors():
            return _read_names(cast("set[bytes]", get_client().smembers(key)))

    def stats(self, queue: str) -> QueueStats:
        """Return the sizes of one queue."""
        return self._stats([queue])[1][0]

    def stats_and_names(self, queue: str) -> tuple[QueueStats, list[str]]:
        """Return the sizes of one queue, and all_names(), in one round trip."""
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            STATS.put(pipe, self._keys, queues=[self._keys_of(queue)], names=[queue])
            pipe.smembers(self._keys.names)
            (_now, sizes), names = pipe.execute()
        return read_sizes(queue, sizes), _read_names(names)

    def all_stats(self) -> list[QueueStats]:
        """Return the sizes of all queues in all_names()."""
        return self._stats(self.all_names())[1]

    def workers(self) -> list[WorkerInfo]:
        """Return the workers and pollers that were seen within a day, the latest heartbeat first."""
        return self.overview()[1]

    def overview(self) -> tuple[list[QueueStats], list[WorkerInfo]]:
        """Return all_stats() and workers(), in three round trips."""
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            pipe.smembers(self._keys.names)
            pipe.zrange(self._keys.workers, 0, -1, desc=True, withscores=True)
            names, seen = pipe.execute()
        now, stats = self._stats(_read_names(names))
        return stats, self._workers(seen, now)

    def _stats(self, queues: Sequence[str]) -> tuple[datetime, list[QueueStats]]:
        keys = [self._keys_of(queue) for queue in queues]
        now, *answers = at_once(STATS.run(get_client(), self._keys, queues=keys, names=queues))
        return from_us(now), [read_sizes(*pair) for pair in zip(queues, answers, strict=True)]

    def _workers(self, seen: Sequence[tuple[bytes, float]], now: datetime) -> list[WorkerInfo]:
        named = [(worker_id.decode(), at) for worker_id, at in seen if _is_text(worker_id)]
        if not named:
            return []
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            for worker_id, _at in named:
                pipe.hmget(self._keys.worker(worker_id), "about", "started")
                pipe.get(self._keys.order(worker_id))
            answers = pipe.execute()
        lease = timedelta(seconds=self.options.lease)
        return [
            read_worker(worker_id, about, started, order, instant_of(at), now, lease)
            for (worker_id, at), (about, started), order in zip(
                named, answers[::2], answers[1::2], strict=True
            )
            if about
        ]

    def present(self, queue: str, states: Sequence[State], task_ids: Sequence[str]) -> list[str]:
        """Return the ids in *task_ids* that are now in one of *states* of *queue*."""
        if not check_several("ids", task_ids):
            return []
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            for state in states:
                pipe.zmscore(getattr(self._keys_of(queue), state), list(task_ids))
            places = pipe.execute()
        found = zip(task_ids, *places, strict=True)
        return [task_id for task_id, *scores in found if any(score is not None for score in scores)]

    def search(
        self,
        queue: str,
        state: State,
        text: str,
        *,
        window: int = 1_000,
        shows: Callable[[TaskInfo], bool] = lambda info: True,
    ) -> Iterator[TaskInfo]:
        """
        Yield the tasks of *queue* in *state* whose id, name, arguments or latest error contain *text*, ignoring case.

        Only the first *window* tasks of the listing are searched. If *shows* returns False for a task, only its id,
        its name and the class of its latest error are searched.
        """

        def matches(info: TaskInfo) -> bool:
            return (info if shows(info) else info.without_contents()).contains(text)

        yield from self.look(queue, state, matches, most=window).found

    def look(
        self,
        queue: str,
        state: State,
        matches: Callable[[TaskInfo], bool],
        *,
        most: int = 1_000,
        after: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Look[TaskInfo]:
        """
        Look at *most* tasks of *queue* in *state*, in the order of the listing, and return those that match.

        *after* is Look.after of the look that this one continues. Of dead and successful tasks, only those that ended
        from *since* to *until* are looked at; of delayed tasks, those that are due then. Other states ignore them.
        """
        unit = {"dead": 1_000, "successful": 1_000, "delayed": 1}.get(state)  # microseconds, of the scores
        first = to_us(since) // unit if since and unit else -inf
        last = to_us(until) // unit if until and unit else inf
        offset = self._offset(queue, state, after, last if state in _LATEST_FIRST else first)
        found, looked_at = list[TaskInfo](), 0
        while looked_at < most:
            size = min(_LOOK, most - looked_at)
            with redis_errors():
                page = self._page(queue, state, offset + looked_at, size)
            within = [(task_id, score) for task_id, score in page if first <= score <= last]
            found += filter(matches, self.read(queue, state, within))
            looked_at += len(within)
            if len(within) < size:
                return Look(found, looked_at, offset, "")
            after = place_of(*within[-1])
        return Look(found, looked_at, offset, after)

    def _offset(self, queue: str, state: State, after: str, bound: float) -> int:
        """Return how many tasks of a listing come before a look: those up to *after*, and those beyond *bound*."""
        if not after and isinf(bound):
            return 0
        key, latest_first = getattr(self._keys_of(queue), state), state in _LATEST_FIRST
        place, task_id = read_place(after) or (bound, "")
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            for score in (place, bound):
                pipe.zcount(key, *((f"({score}", "+inf") if latest_first else ("-inf", f"({score}")))
            (pipe.zrevrank if latest_first else pipe.zrank)(key, task_id)
            beyond_place, beyond_bound, rank = pipe.execute()
        # If the task has left the state meanwhile, those with its score are looked at again.
        return max(int(beyond_place if rank is None else rank + 1), int(beyond_bound))

    def tasks(self, queue: str, state: State, *, offset: int = 0, limit: int = 50) -> list[TaskInfo]:
        """
        Return a page of the tasks of *queue* in *state*: the next to run first, or the latest to end first.

        A task that this release cannot read is listed, too, without a name and with the reason as its error.
        """
        with redis_errors():
            page = self._page(queue, state, offset, limit)
        return self.read(queue, state, page)

    def read(self, queue: str, state: State, page: Sequence[tuple[str, float]]) -> list[TaskInfo]:
        """Return the tasks with these ids and scores, which are of *queue* in *state*, as tasks() does."""
        if not page:
            return []
        keys, ids = self._keys, [task_id for task_id, _score in page]
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            if state == "successful":  # the result is all that is stored
                for task_id in ids:
                    pipe.get(keys.result(task_id))
                strings = [(result,) for result in pipe.execute()]
            else:
                for key in (keys.tasks, keys.runs, keys.errors, keys.progress):
                    pipe.hmget(key, ids)
                strings = [*zip(*pipe.execute(), strict=True)]
        rows = zip(page, strings, strict=True)
        found = (read_row(queue, state, task_id, score, stored) for (task_id, score), stored in rows)
        return [info for info in found if info is not None]

    def ids(self, queue: str, state: State, *, limit: int) -> list[str]:
        """Return the ids of up to *limit* tasks of *queue* in *state*, in the order of the listing."""
        with redis_errors():
            return [task_id for task_id, _score in self._page(queue, state, 0, limit)]

    def _page(self, queue: str, state: State, offset: int, limit: int) -> list[tuple[str, float]]:
        if state not in get_args(State):
            raise InvalidValue(f"The state is {state!r}; it must be one of {', '.join(get_args(State))}.")
        check_int("offset", offset, 0)
        check_int("limit", limit, 0)
        key, latest_first = getattr(self._keys_of(queue), state), state in _LATEST_FIRST
        page = get_client().zrange(key, offset, offset + limit - 1, desc=latest_first, withscores=True)
        return [(text_of(task_id), score) for task_id, score in cast("list[tuple[bytes, float]]", page)]


def execute_later(queue: str, name: str, args: Sequence[Any], delay: float = 0) -> str:
    """
    Push the task *name* into *queue* of the default backend. It runs after *delay* seconds, or at once if that is 0
    or less. Return its id.

    This is the call from the book. As in the book, it takes no kwargs and no priority. Use TaskQueue.push for these.
    """
    is_over = isinstance(delay, int | float) and delay <= 0
    return TaskQueue().push(name, args, queue=queue, delay=None if is_over else delay)


@lru_cache(maxsize=1_024)
def _keys_to_enqueue(alias: str, queue: str) -> list[str]:
    return ENQUEUE.contract.keys_of(QueueKeys(alias, queue), {})


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "COMPONENTS":  # the prefix of all keys
        _keys_to_enqueue.cache_clear()


setting_changed.connect(_forget, dispatch_uid="components.services.queues.queue")


def _chunks(many: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(check_several("ids", many)), CHUNK):
        yield many[start : start + CHUNK]


def _read_names(names: Iterable[bytes]) -> list[str]:
    """Return the sorted names of queues. Bytes that are not UTF-8 are left out, because no queue has such a name."""
    return sorted(name.decode() for name in names if _is_text(name))


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def place_of(task_id: str, score: float) -> str:
    """Return the place of a task in a listing, for Look.after."""
    return f"{score}:{task_id}"


def read_place(place: str) -> tuple[float, str] | None:
    """Return the score and the id of a place, or None if it is none."""
    found, _colon, task_id = place.partition(":")
    try:
        score = float(found)
    except ValueError:
        return None
    return None if isnan(score) else (score, task_id)
