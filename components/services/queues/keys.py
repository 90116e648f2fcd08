"""The keys of task queues. The entity is the alias of a backend: one script serves many of its queues."""

from __future__ import annotations

from components.kit.keyspace import stem


class BackendKeys:
    """The keys that all queues of the backend *alias* share."""

    def __init__(self, alias: str) -> None:
        self._stem = stem("queues", alias)

    @property
    def tasks(self) -> str:
        """HASH id -> task record, as pushed. Entries go when the task succeeds or leaves the dead set."""
        return f"{self._stem}tasks"

    @property
    def runs(self) -> str:
        """HASH id -> run record: starts, workers, token. From the first claim; goes with the task record."""
        return f"{self._stem}runs"

    @property
    def errors(self) -> str:
        """HASH id -> JSON list of errors, oldest first. Goes with the task record."""
        return f"{self._stem}errors"

    @property
    def progress(self) -> str:
        """HASH id -> JSON of the progress that a task reported. Goes with the task record."""
        return f"{self._stem}progress"

    @property
    def uniques(self) -> str:
        """HASH unique key -> id of the unfinished task that has it. Goes when that task ends."""
        return f"{self._stem}uniques"

    @property
    def periodic(self) -> str:
        """ZSET tick name by the microsecond of its last tick. A name goes two years later, unless it is declared."""
        return f"{self._stem}periodic"

    @property
    def ticked(self) -> str:
        """HASH tick name -> ids of the tasks of its last ticks, newest first. Goes with the name in *periodic*."""
        return f"{self._stem}ticked"

    @property
    def paused_ticks(self) -> str:
        """SET names whose ticks are skipped. A name goes when it is resumed, or with that in *periodic*."""
        return f"{self._stem}paused-ticks"

    @property
    def awaited(self) -> str:
        """SET ids of tasks with a waiting caller. An entry goes when the task ends."""
        return f"{self._stem}awaited"

    def ended(self, task_id: str) -> str:
        """LIST with a token that wakes waiting callers when the task has ended. Expires after a minute."""
        return f"{self._stem}ended:{task_id}"

    def result(self, task_id: str) -> str:
        """STRING complete successful task. Expires after its result_ttl."""
        return f"{self._stem}result:{task_id}"

    @property
    def names(self) -> str:
        """SET listed queues. A name goes when the queue has no task in any state, unless it is paused."""
        return f"{self._stem}names"

    @property
    def active(self) -> str:
        """
        SET queues that may have waiting or running tasks, which workers of all queues ask. A name goes when it goes
        from *names*; if there are more than a hundred, as soon as nothing waits or runs.
        """
        return f"{self._stem}active"

    @property
    def paused(self) -> str:
        """SET paused queues. An entry goes when the queue is resumed."""
        return f"{self._stem}paused"

    def pausing(self, call: str) -> str:
        """STRING answer to a call that paused a queue, in case it is repeated. Expires after a minute."""
        return f"{self._stem}pausing:{call}"

    def parked(self, limit: str) -> str:
        """
        ZSET "id queue" of a task that waits for room under a limit, by its place.

        Goes when due. Expires after some days.
        """
        return f"{self._stem}parked:{limit}"

    def unparked(self, call: str) -> str:
        """STRING answer to a call that made a parked task due, in case it is repeated. Expires after a minute."""
        return f"{self._stem}unparked:{call}"

    @property
    def wake_all(self) -> str:
        """
        LIST with at most one token, which wakes a worker of all queues when a queue is used for the first time.

        Goes when a worker takes it.
        """
        return f"{self._stem}wake-all"

    @property
    def wake_poller(self) -> str:
        """
        LIST with at most one token, which wakes a poller when a task is due earlier than all others.

        Goes when a poller takes it.
        """
        return f"{self._stem}wake-poller"

    @property
    def workers(self) -> str:
        """
        ZSET worker id by the millisecond of its last heartbeat.

        An id goes when the worker ends, or a day later.
        """
        return f"{self._stem}workers"

    def worker(self, worker_id: str) -> str:
        """HASH facts about a worker, and its last request with the answer. Expires a day after its last heartbeat."""
        return f"{self._stem}worker:{worker_id}"

    def order(self, worker_id: str) -> str:
        """STRING request to a worker: quiet or stop. Expires after a day."""
        return f"{self._stem}order:{worker_id}"


class QueueKeys(BackendKeys):
    """The keys of the *queue* of the backend *alias*. A task is an id in one of its sorted sets."""

    def __init__(self, alias: str, queue: str) -> None:
        super().__init__(alias)
        self._queue = queue

    @property
    def ready(self) -> str:
        """ZSET id by rank (priority) and the millisecond at which it became runnable. Goes when claimed."""
        return f"{self._stem}ready:{self._queue}"

    @property
    def delayed(self) -> str:
        """ZSET id by the microsecond at which it is due. Goes when promoted to ready."""
        return f"{self._stem}delayed:{self._queue}"

    @property
    def running(self) -> str:
        """ZSET id by the millisecond at which its lease ends. Goes when acked, given back or taken over."""
        return f"{self._stem}running:{self._queue}"

    @property
    def dead(self) -> str:
        """ZSET id by the millisecond at which it died. Goes by dead_ttl and dead_limit."""
        return f"{self._stem}dead:{self._queue}"

    @property
    def successful(self) -> str:
        """ZSET id by the millisecond at which it succeeded. Goes by result_ttl and successful_limit."""
        return f"{self._stem}successful:{self._queue}"

    @property
    def cut(self) -> str:
        """STRING number of starts cut off because the worker ended first. Expires 30 days after the last one."""
        return f"{self._stem}cut:{self._queue}"

    @property
    def wake(self) -> str:
        """LIST with at most one token, which wakes a worker of the queue. Goes with the queue's name."""
        return f"{self._stem}wake:{self._queue}"
