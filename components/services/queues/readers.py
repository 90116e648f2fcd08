"""
QueueReader: what only looks at the queues of one backend alias, for get_result() and the control room.

Counts are cards of sorted sets and pages are ranges of them: one to three round trips, whatever
the size of a queue, and nothing changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

from redis import Redis

from components.conf import QueueOptions, queue_options
from components.exceptions import UnknownFormat
from components.kit.at_once import answer, at_once
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.services.queues import keys
from components.services.queues.formats import NONSENSE, read_result, read_task, run_state, unreadable
from components.services.queues.periodic import read_instant
from components.services.queues.records import QueueStats, State, TaskInfo, WorkerInfo, from_us

#: What the words of a run record are to who looks.
_STATES: dict[str, State] = {
    "running": "running",
    "cancelling": "running",
    "dead": "dead",
    "crashed": "dead",
    "cancelled": "dead",
}
_PAGE = 500  # tasks that a search reads in one round trip

_stats = Script("queues/stats")
_find = Script("queues/find")


class QueueReader:
    """The queues behind TASKS[*alias*], read only. Every method raises RedisUnavailable."""

    def __init__(self, alias: str = "default") -> None:
        self.alias = alias

    @property
    def options(self) -> QueueOptions:
        return queue_options(self.alias)

    @property
    def _client(self) -> Redis:
        return get_client()

    def names(self) -> list[str]:
        """Return the queues in which tasks may wait or run, sorted: those that workers of all queues ask."""
        return self._members(keys.queue_active(self.alias))

    def all_names(self) -> list[str]:
        """Return the queues that hold a task in any state, or are paused, sorted."""
        return self._members(keys.queue_names(self.alias))

    def _members(self, key: str) -> list[str]:
        with redis_errors():
            return _read_names(cast("set[bytes]", self._client.smembers(key)))

    def stats(self, queue: str) -> QueueStats:
        """The sizes of one queue."""
        return self._stats([queue])[1][0]

    def all_stats(self) -> list[QueueStats]:
        """The sizes of every queue of all_names()."""
        return self._stats(self.all_names())[1]

    def workers(self) -> list[WorkerInfo]:
        """The workers and pollers that were seen within a day, the latest heartbeat first."""
        return self.overview()[1]

    def overview(self) -> tuple[list[QueueStats], list[WorkerInfo]]:
        """all_stats() and workers(), in three round trips."""
        with redis_errors(), self._client.pipeline(transaction=False) as pipe:
            pipe.smembers(keys.queue_names(self.alias))
            pipe.zrange(keys.queue_workers(self.alias), 0, -1, desc=True, withscores=True)
            names, seen = pipe.execute()
        now, stats = self._stats(_read_names(names))
        return stats, self._workers(seen, now)

    def _stats(self, queues: Sequence[str]) -> tuple[datetime, list[QueueStats]]:
        waiting = (keys.queue_ready, keys.queue_delayed, keys.queue_running)
        parts = (*waiting, keys.queue_dead, keys.queue_successful, keys.queue_cut)
        script_keys = [keys.queue_paused(self.alias)]
        script_keys += [part(self.alias, queue) for queue in queues for part in parts]
        now, *answers = _stats(self._client, keys=script_keys, args=queues)
        return from_us(now), [
            QueueStats(
                name=queue,
                ready=ready,
                delayed=delayed,
                running=running,
                dead=dead,
                successful=successful,
                paused=bool(paused),
                oldest_age=age / 1000 if age >= 0 else None,
                next_due_at=read_instant(due) if due != b"0" else None,
                cut_off=cut,
            )
            for queue, (ready, delayed, running, dead, successful, paused, age, due, cut) in zip(
                queues, answers, strict=True
            )
        ]

    def _workers(self, seen: Sequence[tuple[bytes, float]], now: datetime) -> list[WorkerInfo]:
        seen = [(worker_id, at) for worker_id, at in seen if _is_text(worker_id)]
        if not seen:
            return []
        with redis_errors(), self._client.pipeline(transaction=False) as pipe:
            for worker_id, _at in seen:
                pipe.hmget(keys.queue_worker(self.alias, worker_id.decode()), "about", "started")
                pipe.get(keys.queue_order(self.alias, worker_id.decode()))
            answers = pipe.execute()
        said, orders = answers[::2], answers[1::2]
        return [
            self._worker(worker_id.decode(), about, started, order, _read_ms(at), now)
            for (worker_id, at), (about, started), order in zip(seen, said, orders, strict=True)
            if about
        ]

    def _worker(
        self,
        worker_id: str,
        about: bytes,
        started: bytes | None,
        order: bytes | None,
        seen_at: datetime,
        now: datetime,
    ) -> WorkerInfo:
        """What a worker says of itself; what cannot be read of it, as an unreadable worker that is not alive."""
        lease = timedelta(seconds=self.options.lease)
        try:
            said = json.loads(about)
            return WorkerInfo(
                id=worker_id,
                kind=str(said["kind"]),
                host=str(said["host"]),
                pid=int(said["pid"]),
                queues=tuple(str(queue) for queue in said["queues"]),
                concurrency=int(said["concurrency"]),
                running=int(said["running"]),
                started_at=from_us(started or b""),
                seen_at=seen_at,
                # What is later was seen by a clock that had jumped ahead.
                alive=now - lease < seen_at < now + lease,
                is_quiet=bool(said.get("quiet", False)),
                order=(order or b"").decode(errors="replace"),
            )
        except (ValueError, *NONSENSE):
            return WorkerInfo(
                id=worker_id,
                kind="unreadable",
                host="",
                pid=0,
                queues=(),
                concurrency=0,
                running=0,
                started_at=seen_at,
                seen_at=seen_at,
                alive=False,
            )

    def get(self, task_id: str) -> TaskInfo | None:
        """
        One task; None if it was never pushed, or if its result has expired.

        Raises UnknownFormat if a newer release wrote it, ValueError if it is no task.
        """
        return at_once(self._get(self._client, task_id))

    async def aget(self, task_id: str) -> TaskInfo | None:
        """get(), awaited."""
        return await self._get(get_async_client(), task_id)

    async def _get(self, client: AnyRedis, task_id: str) -> TaskInfo | None:
        parts = (keys.queue_tasks, keys.queue_runs, keys.queue_errors, keys.queue_progress)
        script_keys = [*(part(self.alias) for part in parts), keys.queue_result(self.alias, task_id)]
        found = await _find.acall(client, keys=script_keys, args=[task_id])
        record, run, errors, progress, result = found
        if result:
            return read_result(task_id, result)
        if not record:
            return None
        state = _STATES.get(run_state(run), "ready")
        info = read_task(task_id, state, record, run, errors, progress)
        return info if state == "dead" else await self._placed(client, info)

    async def _placed(self, client: AnyRedis, info: TaskInfo) -> TaskInfo:
        """*info* with what only its place tells: whether it is delayed, until when, and until when it is leased."""
        with redis_errors():
            pipe = client.pipeline(transaction=False)
            pipe.zscore(keys.queue_delayed(self.alias, info.queue), info.id)
            pipe.zscore(keys.queue_running(self.alias, info.queue), info.id)
            due_us, ends_ms = await answer(pipe.execute())
        if info.state == "running":
            return replace(info, lease_expires_at=_read_ms(ends_ms) if ends_ms else None)
        return replace(info, state="delayed", due_at=_read_us(due_us)) if due_us else info

    def present(self, queue: str, states: Sequence[State], task_ids: Sequence[str]) -> list[str]:
        """Those of *task_ids* that are in one of *states* of *queue* now."""
        if not task_ids:
            return []
        with redis_errors(), self._client.pipeline(transaction=False) as pipe:
            for state in states:
                pipe.zmscore(getattr(keys, f"queue_{state}")(self.alias, queue), list(task_ids))
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
        Yield the tasks of *queue* in *state* whose id, name, arguments or latest error hold *text*, whatever its
        case, among the first *window* of the listing. Of a task that *shows* denies, only the id, the name and the
        class of the latest error are searched.
        """
        wanted = text.casefold()
        for offset in range(0, window, _PAGE):
            page = self.tasks(queue, state, offset=offset, limit=min(_PAGE, window - offset))
            yield from (info for info in page if wanted in _text(info, shows(info)))
            if not page:
                return

    def tasks(self, queue: str, state: State, *, offset: int = 0, limit: int = 50) -> list[TaskInfo]:
        """
        A page of the tasks of *queue* in *state*: the next to run first, or the latest to end first.

        What is no task of this release is listed too, without a name and with the reason as its error.
        """
        with redis_errors():
            client = self._client
            ids, scores = self._page(client, queue, state, offset, limit)
            if not ids:
                return []
            with client.pipeline(transaction=False) as pipe:
                for part in (keys.queue_tasks, keys.queue_runs, keys.queue_errors, keys.queue_progress):
                    pipe.hmget(part(self.alias), ids)
                for task_id in ids:
                    pipe.get(keys.queue_result(self.alias, task_id))
                records, runs, errors, progress, *results = pipe.execute()
        rows = zip(ids, scores, records, runs, errors, progress, results, strict=True)
        return [info for row in rows if (info := _read_row(queue, state, *row)) is not None]

    def _page(
        self, client: Redis, queue: str, state: State, offset: int, limit: int
    ) -> tuple[list[str], list[float]]:
        key = getattr(keys, f"queue_{state}")(self.alias, queue)
        latest_first = state in ("dead", "successful")
        page = client.zrange(key, offset, offset + limit - 1, desc=latest_first, withscores=True)
        pairs = cast("list[tuple[bytes, float]]", page)
        return [text_of(task_id) for task_id, _score in pairs], [score for _id, score in pairs]


def _read_row(
    queue: str,
    state: State,
    task_id: str,
    score: float,
    record: bytes | None,
    run: bytes | None,
    errors: bytes | None,
    progress: bytes | None,
    result: bytes | None,
) -> TaskInfo | None:
    try:
        if state == "successful":
            return read_result(task_id, result) if result else None  # expired since it was listed
        info = read_task(task_id, state, record or b"", run, errors, progress)
    except (UnknownFormat, ValueError) as reason:
        return unreadable(task_id, queue, state, str(reason), errors)
    if state == "running":
        return replace(info, lease_expires_at=_read_ms(score))
    return replace(info, due_at=_read_us(score)) if state == "delayed" else info


def _read_us(score: float) -> datetime:
    return read_instant(b"%f" % score)


def _read_ms(score: float) -> datetime:
    return read_instant(b"%f" % (score * 1000))


def _read_names(names: Iterable[bytes]) -> list[str]:
    """Return the names of queues, sorted. Leave out bytes that are not UTF-8: no queue has such a name."""
    return sorted(name.decode() for name in names if _is_text(name))


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(info: TaskInfo, shows: bool) -> str:
    """What a search looks at."""
    error = info.errors[-1] if info.errors else None
    parts = [info.id, info.name, error.exception_class_path if error else ""]
    if shows:
        with suppress(RecursionError):  # it is nested too deeply to be looked into
            parts.append(json.dumps([info.args, info.kwargs], ensure_ascii=False))
        parts.append(error.traceback if error else "")
    return "\n".join(parts).casefold()
