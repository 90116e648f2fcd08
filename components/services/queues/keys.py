"""The keys of task queues. The entity is the alias of a backend: one script serves many of its queues."""

from components.kit.keyspace import Key, SharedKey, stem


class BackendKeys:
    """The keys that all queues of the backend *alias* share."""

    def __init__(self, alias: str) -> None:
        self._stem = stem("queues", alias)

    tasks = SharedKey(
        "HASH id -> task record, as pushed. Entries go when the task succeeds or leaves the dead set."
    )
    runs = SharedKey(
        "HASH id -> run record: starts, workers, token. From the first claim; goes with the task record."
    )
    errors = SharedKey("HASH id -> JSON list of errors, oldest first. Goes with the task record.")
    progress = SharedKey("HASH id -> JSON of the progress that a task reported. Goes with the task record.")
    uniques = SharedKey("HASH unique key -> id of the unfinished task that has it. Goes when that task ends.")
    periodic = SharedKey(
        "ZSET tick name by the microsecond of its last tick. A name goes two years later, unless it is declared."
    )
    ticked = SharedKey(
        "HASH tick name -> ids of the tasks of its last ticks, newest first. Goes with the name in *periodic*."
    )
    paused_ticks = SharedKey(
        "SET names whose ticks are skipped. A name goes when it is resumed, or with that in *periodic*."
    )
    awaited = SharedKey("SET ids of tasks with a waiting caller. An entry goes when the task ends.")

    def ended(self, task_id: str) -> str:
        """LIST with a token that wakes waiting callers when the task has ended. Expires after a minute."""
        return f"{self._stem}ended:{task_id}"

    def result(self, task_id: str) -> str:
        """STRING complete successful task. Expires after its result_ttl."""
        return f"{self._stem}result:{task_id}"

    names = SharedKey(
        "SET listed queues. A name goes when the queue has no task in any state, unless it is paused."
    )
    active = SharedKey(
        "SET queues that may have waiting or running tasks, which workers of all queues ask. A name goes when it "
        "goes from *names*; if there are more than a hundred, as soon as nothing waits or runs."
    )
    paused = SharedKey("SET paused queues. An entry goes when the queue is resumed.")

    def pausing(self, call: str) -> str:
        """STRING answer to a call that paused a queue, in case it is repeated. Expires after a minute."""
        return f"{self._stem}pausing:{call}"

    limits = SharedKey(
        "SET limits under which tasks are parked. A name goes with the last. Expires after some days."
    )

    def limited(self, limit: str) -> str:
        """ZSET queues whose tasks wait for room under a limit. Goes with the last task. Expires after some days."""
        return f"{self._stem}limited:{limit}"

    def parked(self, room: str) -> str:
        """
        ZSET task id by its place. *room* is a limit and a queue, with a colon between them.

        An id goes when the task is due. Expires after some days.
        """
        return f"{self._stem}parked:{room}"

    def unparked(self, call: str) -> str:
        """STRING answer to a call that made a parked task due, in case it is repeated. Expires after a minute."""
        return f"{self._stem}unparked:{call}"

    wake_all = SharedKey(
        "LIST with at most one token, which wakes a worker of all queues when a queue is used for the first time. "
        "Goes when a worker takes it."
    )
    wake_poller = SharedKey(
        "LIST with at most one token, which wakes a poller when a task is due earlier than all others. Goes when a "
        "poller takes it."
    )
    workers = SharedKey(
        "ZSET worker id by the millisecond of its last heartbeat. An id goes when the worker ends, or a day later."
    )

    def worker(self, worker_id: str) -> str:
        """HASH facts about a worker, and its last request with the answer. Expires a day after its last heartbeat."""
        return f"{self._stem}worker:{worker_id}"

    def order(self, worker_id: str) -> str:
        """STRING request to a worker: quiet or stop. Expires after a day."""
        return f"{self._stem}order:{worker_id}"


class QueueKeys(BackendKeys):
    """The keys of the *queue* of the backend *alias*. A task is an id in one of its sorted sets."""

    def __init__(self, alias: str, queue: str) -> None:
        self.queue, self._stem, self._end = queue, stem("queues", alias), f":{queue}"

    ready = Key(
        "ZSET id by rank (priority) and the millisecond at which it became runnable. Goes when claimed."
    )
    delayed = Key("ZSET id by the microsecond at which it is due. Goes when promoted to ready.")
    running = Key(
        "ZSET id by the millisecond at which its lease ends. Goes when acked, given back or taken over."
    )
    dead = Key("ZSET id by the millisecond at which it died. Goes by dead_ttl and dead_limit.")
    successful = Key(
        "ZSET id by the millisecond at which it succeeded. Goes by result_ttl and successful_limit."
    )
    cut = Key(
        "STRING number of starts cut off because the worker ended first. Expires 30 days after the last one."
    )
    trimmed = Key("STRING number of dead tasks that dead_limit removed. Expires a day after the last one.")
    wake = Key("LIST with at most one token, which wakes a worker of the queue. Goes with the queue's name.")
