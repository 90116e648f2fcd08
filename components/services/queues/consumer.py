"""
Consumer: what one worker says to the queues of a backend alias.

In the steady state advance() is all that a worker says: one script hands in what was finished, and takes what is
next. Each request has a number, and the server remembers the last one with its answer. So a request whose reply was
lost is sent again, by the caller of the script or after an outage by the worker, and changes nothing twice. A claim
is the worker's for a lease, which renew() begins anew. If the worker dies, the next one that advances after the lease
takes the task over.

Tasks whose concurrency limit is reached are parked: they stand among the delayed tasks, due in some seconds, and in
an index of their limit and queue: by priority, then by when they became runnable. When a run of that limit has ended,
the first is due at once. Nothing depends on that: if the worker of the run dies first, each parked task comes back by
itself, the later the more there are in its queue, and is parked again.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, cast

from redis.exceptions import ResponseError

from components.conf import queue_options
from components.exceptions import StepRefused
from components.kit.client import SHORTEST_BLOCK, get_client, longest_block
from components.kit.declarations import import_tasks
from components.kit.errors import redis_errors, unblocked
from components.kit.ids import known_sites
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.services.queues.facts import Progress, TaskInfo, from_us, read_instant, to_ms, to_us
from components.services.queues.formats import (
    FORMAT,
    SPAN,
    TASK,
    crashes_of,
    own_lease,
    read_task,
    starts_of,
    unique_key,
    write_progress,
)
from components.services.queues.keys import BackendKeys, QueueKeys

MOST = 1_000  # tasks that one request may want, and hand in: far fewer than Lua can unpack
REMEMBERED = 86_400_000  # milliseconds: a silent worker is shown as lost for a day
_ABANDONED = 100  # tasks of each queue that one request takes over
_LET_GO = 1_000  # dead tasks that are removed in one call
_CUT_KEPT = 30 * 86_400_000  # milliseconds for which the count of cut-off starts is kept after the last
_TRIMMED = 100  # queues that are looked at in one call
_AGAIN = 5.0  # seconds until a parked task comes back by itself
_EACH = 0.02  # seconds more for each that is parked already, so that many do not keep workers busy looking
_FORGOTTEN = 86_400  # seconds for which the index of parked tasks is kept after that

ADVANCE = Script("queues/advance")
PARK = Script("queues/park")
PROGRESS = Script("queues/progress")
RELEASE = Script("queues/release")
RENEW = Script("queues/renew")
TRIM = Script("queues/trim")
UNPARK = Script("queues/unpark")


@dataclass(eq=False, slots=True)
class Claimed:
    """A task that is this worker's until its lease ends: ack, renew or release it with the token."""

    id: str
    queue: str
    token: str
    #: How often it was started since it was sent, this time included.
    starts: int
    record: bytes
    run: bytes
    errors: bytes

    @property
    def crashes(self) -> int:
        """How many workers have died under it."""
        return crashes_of(self.run)

    def read(self) -> TaskInfo:
        """Return the task itself. Raises UnknownFormat if a newer release wrote it, ValueError if it is none."""
        return read_task(self.id, "running", self.record, self.run, self.errors or None)


class Finished(NamedTuple):
    """
    What became of a claimed task.

    The outcome says what the number and the document are. "successful": for how many seconds the result is kept, and
    the result. "dead" and "expired": the instant at which the task ended, and the errors. "retry": the seconds until
    the next attempt, and the errors.
    """

    task: Claimed
    outcome: Literal["successful", "dead", "expired", "retry"]
    number: float | datetime
    document: bytes | str


@dataclass(frozen=True)
class Heartbeat:
    """The answer to a heartbeat."""

    #: Ids that are no longer this worker's: others have taken them over.
    lost: list[str]
    #: Ids of running tasks that are to be cancelled.
    cancelled: list[str]
    #: What the worker was asked to do: "quiet", "stop" or "".
    order: str


@dataclass(frozen=True)
class Request:
    """What advance() sends; sent again unchanged until it is answered."""

    number: int
    #: The queues in the order of asking, and how many of the wanted tasks fall to each on average; 0 asks for
    #: none. If these numbers add up to more than is wanted, the order is strict.
    shares: Mapping[str, float]
    want: int
    finished: Sequence[Finished]
    #: Whether to take over what others have abandoned.
    take_over: bool = True
    turn: int = 0


@dataclass(frozen=True)
class Step:
    """The answer to one advance(): the server's time, what was claimed, and when to look again."""

    now: datetime
    claimed: list[Claimed]
    #: When the next task is due or the next lease ends, if any.
    look_again_at: datetime | None
    #: Ids whose ack came too late: another worker has them, or has finished them.
    lost: list[str]

    @property
    def is_behind(self) -> bool:
        """Whether there was more to do than one step does, so that the next one may find tasks at once."""
        return self.look_again_at is not None and self.look_again_at <= self.now


class _Asked(NamedTuple):
    """A queue that is asked for tasks, by the names that advance.lua has."""

    name: str
    share: float


class _Ack(NamedTuple):
    """A finished task, by the names that advance.lua has; *number* is that of its queue."""

    number: int
    id: str
    token: str
    outcome: str
    value: int
    unique: str | bytes
    document: bytes | str

    @classmethod
    def of(cls, number: int, finished: Finished) -> _Ack:
        task, outcome, value, document = finished
        unique: str | bytes = "-"
        if outcome == "successful":
            told, unique = to_ms(cast(float, value)), unique_key(task.record)
        elif outcome != "retry":
            told = to_us(cast(datetime, value))
        else:
            told = round(cast(float, value) * 1_000_000)
        return cls(number, task.id, task.token, outcome, told, unique, document)


class _Held(NamedTuple):
    """A claimed task whose lease begins anew, or that is given back, by the names that the scripts have."""

    number: int
    id: str
    token: str
    lease: int = 0
    has_begun: int = 0


class _Parked(NamedTuple):
    """A task that is parked, and its place among the ready."""

    place: int
    id: str


class Consumer:
    """A worker or poller. Its id is new with each object; the constructor does no I/O."""

    def __init__(self, alias: str = "default", *, kind: str = "worker", concurrency: int = 1) -> None:
        self.alias = alias
        self.kind = kind
        self.concurrency = concurrency
        #: Told with the heartbeat: it takes no more tasks.
        self.is_quiet = False
        #: How many tasks were wanted so far: dealing the next ones to the queues goes on from there.
        self.turn = 0
        self.host = "".join(socket.gethostname().replace(",", "").split())[:30] or "localhost"
        self.id = f"{self.host}-{os.getpid()}-{secrets.token_hex(4)}"
        self._requests = 0

    @property
    def _keys(self) -> BackendKeys:
        return BackendKeys(self.alias)

    def _keys_of(self, queues: Iterable[str]) -> list[QueueKeys]:
        return [QueueKeys(self.alias, queue) for queue in queues]

    def request(
        self,
        shares: Mapping[str, float],
        want: int,
        finished: Sequence[Finished] = (),
        *,
        take_over: bool = True,
    ) -> Request:
        """
        Return the next request: *want* tasks from the queues of *shares*, and the acks of *finished*.

        Of each, at most MOST; the next request has the rest. Without *take_over*, tasks that others have abandoned
        are left alone.
        """
        self._requests += 1
        others = {done.task.queue: 0 for done in finished if done.task.queue not in shares}
        turn, self.turn = self.turn, self.turn + want
        return Request(self._requests, {**shares, **others}, min(want, MOST), finished, take_over, turn)

    def advance(self, request: Request) -> Step:
        """
        Ack, promote, take over and claim.

        Raises RedisUnavailable: send the same request again then. Raises StepRefused if the script failed: perhaps
        one of the acks is the reason.
        """
        options, queues = queue_options(self.alias), list(request.shares)
        numbers = {queue: number for number, queue in enumerate(queues, start=1)}
        answer = ADVANCE.run(
            get_client(),
            self._keys,
            queues=self._keys_of(queues),
            worker_id=self.id,
            request=request.number,
            wanted=request.want,
            lease=to_ms(options.lease),
            max_crashes=options.max_crashes,
            listed=options.successful_limit,
            abandoned=_ABANDONED if request.take_over else 0,
            turn=request.turn,
            asked=[_Asked(queue, share) for queue, share in request.shares.items()],
            finished=[_Ack.of(numbers[done.task.queue], done) for done in request.finished],
        )
        try:
            now, again, work, lost = at_once(answer)
        except ResponseError as error:
            raise StepRefused(f"Redis refused a step of the worker {self.id}: {error}") from error
        token = f"{self.id}:{request.number}"
        claimed = [
            Claimed(task_id.decode(), queues[number - 1], token, starts_of(run), record, run, errors)
            for number, task_id, record, run, errors in work
        ]
        look_again_at = read_instant(again) if again != b"0" else None
        return Step(from_us(now), claimed, look_again_at, [task_id.decode() for task_id in lost])

    def renew(self, serves: Sequence[str], running: Sequence[Claimed] = ()) -> Heartbeat:
        """Tell that this worker is alive and *serves* those queues, and let the leases of *running* begin anew."""
        numbers, lease = _numbers(running), to_ms(queue_options(self.alias).lease)
        answer = RENEW.run(
            get_client(),
            self._keys,
            queues=self._keys_of(numbers),
            worker_id=self.id,
            remembered=REMEMBERED,
            about=self._about(serves, len(running)),
            claimed=[
                _Held(numbers[task.queue], task.id, task.token, lease=own_lease(task.record) or lease)
                for task in running
            ],
        )
        order, lost, cancelled = at_once(answer)
        return Heartbeat(
            [task_id.decode() for task_id in lost],
            [task_id.decode() for task_id in cancelled],
            order.decode(),
        )

    def _about(self, serves: Sequence[str], running: int) -> str:
        return json.dumps(
            {
                "v": FORMAT,
                "kind": self.kind,
                "host": self.host,
                "pid": os.getpid(),
                "queues": list(serves),
                "concurrency": self.concurrency,
                "running": running,
                "quiet": self.is_quiet,
                "site": known_sites()[0],
                "broken": list(import_tasks() if import_tasks.cache_info().currsize else ()),
            }
        )

    def progress(self, task: Claimed, progress: Progress) -> bool:
        """Write down how far *task* is. Return False if it is to be cancelled, or another worker has it."""
        document = write_progress(progress)
        answer = PROGRESS.run(get_client(), self._keys, id=task.id, token=task.token, document=document)
        return bool(at_once(answer) == 1)

    def trim(self, *queues: str) -> int:
        """
        Remove the dead tasks of *queues* that are too old or too many, and return how many were removed.

        Queues without any task that are not paused are forgotten. What a clock that had jumped ahead has stored
        becomes as if it were stored now.
        """
        options, client, gone = queue_options(self.alias), get_client(), 0
        for start in range(0, len(queues), _TRIMMED):
            part, went = queues[start : start + _TRIMMED], _LET_GO
            while went == _LET_GO:
                answer = TRIM.run(
                    client,
                    self._keys,
                    queues=self._keys_of(part),
                    dead_kept=to_ms(options.dead_ttl),
                    dead_limit=options.dead_limit,
                    listed_for=to_ms(options.result_ttl),
                    most=_LET_GO,
                    lease=to_ms(options.lease),
                    parked=round(_AGAIN * 1e6),
                    each=round(_EACH * 1e6),
                    queue_names=part,
                )
                gone += (went := int(at_once(answer)))
        return gone

    def release(self, tasks: Sequence[Claimed], *, delay: float = 0, begun: Container[Claimed] = ()) -> int:
        """
        Give back tasks that did not end, to their old places or after *delay* seconds.

        Return how many were still this worker's. No attempt is used up. Tasks in *begun* had been started, and are
        counted as cut off.
        """
        if not tasks:
            return 0
        numbers = _numbers(tasks)
        answer = RELEASE.run(
            get_client(),
            self._keys,
            queues=self._keys_of(numbers),
            delay=round(delay * 1_000_000),
            cut_kept=_CUT_KEPT,
            claimed=[
                _Held(numbers[task.queue], task.id, task.token, has_begun=int(task in begun))
                for task in tasks
            ],
        )
        return int(at_once(answer))

    def leave(self) -> None:
        """Remove this worker from the list of workers."""
        # A full server accepts each of these commands, but no transaction, whatever is in it.
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            pipe.zrem(self._keys.workers, self.id)
            # One by one, for redis-py's client of a cluster.
            pipe.delete(self._keys.worker(self.id))
            pipe.delete(self._keys.order(self.id))
            pipe.execute()

    def wait(self, queues: Sequence[str], seconds: float, *, newcomers: bool = False) -> bool:
        """
        Wait until something may be ready in *queues*, or with *newcomers* in one that is new.

        Return False after *seconds*, or after the longest that a connection can wait, if that is less. True is a
        hint, and does not say that a task is left. A poller waits for an earlier due time as well.
        """
        lists = [keys.wake for keys in self._keys_of(queues)]
        if self.kind == "poller":
            lists.append(self._keys.wake_poller)
        elif newcomers:
            lists.append(self._keys.wake_all)
        client = get_client()
        with redis_errors(), unblocked():
            found = client.blpop(lists, timeout=max(SHORTEST_BLOCK, min(seconds, longest_block(client))))
            return found is not None
        return False

    def park(self, name: str, tasks: Sequence[Claimed]) -> int:
        """Give back tasks of the limit *name*, which is reached. Return how many were still the caller's."""
        client, keys, released = get_client(), self._keys, 0
        for queue in _numbers(tasks):
            with redis_errors():
                again = _AGAIN + _EACH * int(client.zcard(keys.parked(f"{name}:{queue}")))
            ours = [task for task in tasks if task.queue == queue]
            released += self.release(ours, delay=again)
            parked = [_Parked(_place(task), task.id) for task in ours]
            kept = (round(again) + _FORGOTTEN) * 1000
            at_once(PARK.run(client, keys, limit=name, queue=queue, kept=kept, tasks=parked))
        return released

    def unpark(self, name: str, by: str, *, delay: float = 0) -> bool:
        """
        Let the first that was parked under *name* be due now, or after *delay* seconds. *by* names this call.

        Paused queues are passed over. If ready or due tasks of its queue wait, perhaps since no worker serves it, the
        first in a queue where none waits is due as well. Return False if there is none.
        """
        answer = UNPARK.run(
            get_client(),
            self._keys,
            queues=self._keys_of([""]),  # the script appends the name
            limit=name,
            caller=by,
            delay=round(delay * 1_000_000),
        )
        return bool(at_once(answer))


def _numbers(tasks: Iterable[Claimed]) -> dict[str, int]:
    queues = dict.fromkeys(task.queue for task in tasks)
    return {queue: number for number, queue in enumerate(queues, start=1)}


def _place(task: Claimed) -> int:
    """Return the score of *task* when it was first ready."""
    head = TASK.read(task.record.partition(b"\n")[0])
    rank = (100 - int(head["priority"])) * 2 + 1 - int(head["due_first"])
    return rank * SPAN + max(int(head["enqueued"]), int(head["due"])) // 1000
