"""
Consumer: one worker's side of the queues of a backend alias.

advance() is the whole of a worker's talk in the steady state: it hands in what was finished and takes what is
next, in one script. Each request has a number, and the server remembers the last one with its answer;
so a request whose reply was lost is sent again, by the script's caller or after an outage by the
worker, and changes nothing twice. A claim is the worker's for a lease, and renew() keeps it; a worker
that died is taken over by whoever advances next after the lease.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from redis import Redis
from redis.exceptions import ResponseError

from components.conf import queue_options
from components.exceptions import StepRefused
from components.kit.client import SHORTEST_BLOCK, get_client, longest_block
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.services.queues import keys
from components.services.queues.formats import FORMAT, own_lease, read_task, unique_key, write_progress
from components.services.queues.periodic import read_instant
from components.services.queues.records import Progress, TaskInfo, from_us, to_us

MOST = 1_000  # tasks that one request may want or hand in: far below what Lua can unpack
REMEMBERED = 86_400_000  # milliseconds: a silent worker is shown as lost for a day

_advance = Script("queues/advance")
_release = Script("queues/release")
_renew = Script("queues/renew")
_progress = Script("queues/progress")
_trim = Script("queues/trim")

_ABANDONED = 100  # tasks of each queue that one request takes over
_LET_GO = 1_000  # dead tasks that go in one call
_CUT_KEPT = 30 * 86_400_000  # milliseconds that the number of starts that were cut off is kept after the last
_TRIMMED = 100  # queues that are looked at in one call


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
        return int(self.run.split(b" ", 5)[4])

    def read(self) -> TaskInfo:
        """The task itself. Raises UnknownFormat if a newer release wrote it, ValueError if it is none."""
        return read_task(self.id, "running", self.record, self.run, self.errors or None)


class Finished(NamedTuple):
    """
    What became of a claimed task. Its outcome says what the others are: "successful", the seconds that the result
    is kept, and the result; "dead", when it ended (an instant), and the errors; "retry", the seconds until the
    next attempt, and the errors.
    """

    task: Claimed
    outcome: Literal["successful", "dead", "retry"]
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
    #: none. Where they add up to more than is wanted, the order is strict.
    shares: Mapping[str, float]
    want: int
    finished: Sequence[Finished]
    #: Whether to take over what others have abandoned.
    take_over: bool = True
    #: From where what is wanted is dealt: how many tasks were wanted before.
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


class Consumer:
    """A worker or poller. Its id is new with each object; the constructor does no I/O."""

    def __init__(self, alias: str = "default", *, kind: str = "worker", concurrency: int = 1) -> None:
        self.alias = alias
        self.kind = kind
        self.concurrency = concurrency
        #: Told with the heartbeat: it takes no more tasks.
        self.is_quiet = False
        self.host = "".join(socket.gethostname().split())[:30] or "localhost"
        self.id = f"{self.host}-{os.getpid()}-{secrets.token_hex(4)}"
        self._requests = 0

    @property
    def _client(self) -> Redis:
        return get_client()

    def request(
        self,
        shares: Mapping[str, float],
        want: int,
        finished: Sequence[Finished] = (),
        *,
        take_over: bool = True,
    ) -> Request:
        """
        The next request: *want* tasks from the queues of *shares*, and the acks of *finished*. Each at most
        MOST; more is wanted and handed in by the next. Without *take_over*, what others have abandoned stays so.
        """
        self._requests += 1
        others = {done.task.queue: 0 for done in finished if done.task.queue not in shares}
        turn = getattr(shares, "turn", 0)
        return Request(self._requests, {**shares, **others}, min(want, MOST), finished, take_over, turn)

    def advance(self, request: Request) -> Step:
        """
        Ack, promote, take over and claim.

        Raises RedisUnavailable: send the same request again then. Raises StepRefused if the script failed: perhaps
        one of the acks is the reason.
        """
        options = queue_options(self.alias)
        queues = list(request.shares)
        args: list[Any] = [
            self.id,
            request.number,
            request.want,
            _ms(options.lease),
            options.max_crashes,
            options.successful_limit,
            _ABANDONED if request.take_over else 0,
            len(queues),
            request.turn,
        ]
        for queue, share in request.shares.items():
            args += (queue, share)
        numbers = {queue: number for number, queue in enumerate(queues, start=1)}
        for done in request.finished:
            args += (_words(numbers[done.task.queue], done), done.document)
        try:
            answer = _advance(self._client, keys=self._keys(queues), args=args)
        except ResponseError as error:
            raise StepRefused(f"Redis refused a step of the worker {self.id}: {error}") from error
        return self._step(queues, f"{self.id}:{request.number}", *answer)

    def _keys(self, queues: Sequence[str]) -> list[str]:
        alias = self.alias
        shared = [keys.queue_tasks(alias), keys.queue_runs(alias), keys.queue_errors(alias)]
        shared += [keys.queue_progress(alias), keys.queue_uniques(alias), keys.queue_awaited(alias)]
        shared += [keys.queue_worker(alias, self.id), keys.queue_paused(alias)]
        shared += [keys.queue_result(alias, ""), keys.queue_ended(alias, ""), keys.queue_active(alias)]
        waiting = (keys.queue_ready, keys.queue_delayed, keys.queue_running)
        parts = (*waiting, keys.queue_dead, keys.queue_successful, keys.queue_wake)
        return shared + [part(alias, queue) for queue in queues for part in parts]

    def _step(
        self, queues: Sequence[str], token: str, now: bytes, again: bytes, work: list[Any], lost: list[bytes]
    ) -> Step:
        claimed = [
            Claimed(
                task_id.decode(), queues[number - 1], token, int(run.split(b" ", 4)[3]), record, run, errors
            )
            for number, task_id, record, run, errors in work
        ]
        look_again_at = read_instant(again) if again != b"0" else None
        return Step(from_us(now), claimed, look_again_at, [task_id.decode() for task_id in lost])

    def renew(self, serves: Sequence[str], running: Sequence[Claimed] = ()) -> Heartbeat:
        """The heartbeat: this worker is alive and *serves* those queues, and the leases of *running* begin anew."""
        served = list(dict.fromkeys(task.queue for task in running))
        numbers = {queue: number for number, queue in enumerate(served, start=1)}
        lease = _ms(queue_options(self.alias).lease)
        args: list[Any] = [self.id, REMEMBERED, self._about(serves, len(running))]
        for task in running:
            args.append(f"{numbers[task.queue]} {task.id} {task.token} {own_lease(task.record) or lease}")
        alias = self.alias
        script_keys = [keys.queue_worker(alias, self.id), keys.queue_workers(alias), keys.queue_runs(alias)]
        script_keys.append(keys.queue_order(alias, self.id))
        script_keys += [keys.queue_running(alias, queue) for queue in served]
        order, lost, cancelled = _renew(self._client, keys=script_keys, args=args)
        return Heartbeat(
            [task_id.decode() for task_id in lost],
            [task_id.decode() for task_id in cancelled],
            order.decode(),
        )

    def _about(self, serves: Sequence[str], running: int) -> str:
        about: dict[str, Any] = {"v": FORMAT, "kind": self.kind, "host": self.host, "pid": os.getpid()}
        about |= {"queues": list(serves), "concurrency": self.concurrency, "running": running}
        return json.dumps(about | {"quiet": self.is_quiet})

    def progress(self, task: Claimed, progress: Progress) -> bool:
        """
        Write down how far *task* is; whether it should go on. False: it is to be cancelled, or another worker
        has it.
        """
        script_keys = [keys.queue_runs(self.alias), keys.queue_progress(self.alias)]
        args = [task.id, task.token, write_progress(progress)]
        return bool(_progress(self._client, keys=script_keys, args=args) == 1)

    def trim(self, *queues: str) -> int:
        """
        Let go of the dead tasks of *queues* that are too old or too many, and forget the queues that hold no task in
        any state and are not paused; return how many tasks went.

        Leases that end more than an hour too late were given by a clock that had jumped ahead: they end as if they
        were given now.
        """
        return sum(self._trim(queues[start : start + _TRIMMED]) for start in range(0, len(queues), _TRIMMED))

    def _trim(self, queues: Sequence[str]) -> int:
        alias, options = self.alias, queue_options(self.alias)
        shared = (keys.queue_tasks, keys.queue_runs, keys.queue_errors, keys.queue_progress)
        script_keys = [
            part(alias) for part in (*shared, keys.queue_names, keys.queue_active, keys.queue_paused)
        ]
        waiting = (keys.queue_ready, keys.queue_delayed, keys.queue_running)
        parts = (*waiting, keys.queue_dead, keys.queue_successful, keys.queue_wake)
        script_keys += [part(alias, queue) for queue in queues for part in parts]
        kept = [_ms(options.dead_ttl), options.dead_limit, _ms(options.result_ttl)]
        args = [*kept, _LET_GO, _ms(options.lease), *queues]
        gone = 0
        while True:
            went = int(_trim(self._client, keys=script_keys, args=args))
            gone += went
            if went < _LET_GO:
                return gone

    def release(self, tasks: Sequence[Claimed], *, delay: float = 0, begun: Container[Claimed] = ()) -> int:
        """
        Give back what did not end, to its old place or after *delay* seconds; how many were still ours.

        No attempt is used up. Those that are in *begun* had been started, and are counted as cut off.
        """
        if not tasks:
            return 0
        queues = list(dict.fromkeys(task.queue for task in tasks))
        numbers = {queue: number for number, queue in enumerate(queues, start=1)}
        parts = (keys.queue_ready, keys.queue_delayed, keys.queue_running, keys.queue_wake, keys.queue_cut)
        script_keys = [keys.queue_runs(self.alias)]
        script_keys += [part(self.alias, queue) for queue in queues for part in parts]
        args: list[Any] = [round(delay * 1_000_000), _CUT_KEPT]
        args += [f"{numbers[task.queue]} {task.id} {task.token} {int(task in begun)}" for task in tasks]
        return int(_release(self._client, keys=script_keys, args=args))

    def leave(self) -> None:
        """Be no longer listed among the workers."""
        # A server that is full takes each of these, but no transaction, whatever is in it.
        with redis_errors(), self._client.pipeline(transaction=False) as pipe:
            pipe.zrem(keys.queue_workers(self.alias), self.id)
            # One by one, for redis-py's client of a cluster.
            pipe.delete(keys.queue_worker(self.alias, self.id))
            pipe.delete(keys.queue_order(self.alias, self.id))
            pipe.execute()

    def wait(self, queues: Sequence[str], seconds: float, *, newcomers: bool = False) -> bool:
        """
        Wait until something may be ready in *queues*, or with *newcomers* in one that is new; False after
        *seconds*, or after the longest that a connection can wait, if that is less. True is a hint, and
        does not say that a task is left. A poller waits for an earlier due time as well.
        """
        lists = [keys.queue_wake(self.alias, queue) for queue in queues]
        if self.kind == "poller":
            lists.append(keys.queue_wake_poller(self.alias))
        elif newcomers:
            lists.append(keys.queue_wake_all(self.alias))
        client = self._client
        with redis_errors():
            return (
                client.blpop(lists, timeout=max(SHORTEST_BLOCK, min(seconds, longest_block(client))))
                is not None
            )


def _words(queue: int, done: Finished) -> str:
    task, unique = done.task, "-"
    if done.outcome == "successful":
        number, unique = _ms(cast(float, done.number)), unique_key(task.record).decode()
    elif done.outcome == "dead":
        number = to_us(cast(datetime, done.number))
    else:
        number = round(cast(float, done.number) * 1_000_000)
    return f"{queue} {task.id} {task.token} {done.outcome[0]} {number} {unique}"


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
