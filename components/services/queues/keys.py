"""Keys of task queues."""

from __future__ import annotations

from components.kit.keyspace import _key

# Task queues. The entity is the backend alias: one script serves many queues. (services/queues)


def queue_tasks(alias: str) -> str:
    """HASH id -> task record, as pushed. Entries go when the task succeeds or leaves the dead set."""
    return _key("queues", alias, "tasks")


def queue_runs(alias: str) -> str:
    """HASH id -> run record: starts, workers, token. From the first claim; goes with the task record."""
    return _key("queues", alias, "runs")


def queue_errors(alias: str) -> str:
    """HASH id -> JSON list of what went wrong, oldest first. Goes with the task record."""
    return _key("queues", alias, "errors")


def queue_progress(alias: str) -> str:
    """HASH id -> JSON, how far a task says it is. Goes with the task record."""
    return _key("queues", alias, "progress")


def queue_uniques(alias: str) -> str:
    """HASH unique key -> id of the unfinished task that has it. Goes when that task ends."""
    return _key("queues", alias, "uniques")


def queue_periodic(alias: str) -> str:
    """ZSET tick name by the microsecond of its last tick. Goes two years later, if nobody declares it any more."""
    return _key("queues", alias, "periodic")


def queue_awaited(alias: str) -> str:
    """SET of ids whose end somebody waits for. An entry goes when the task ends."""
    return _key("queues", alias, "awaited")


def queue_ended(alias: str, task_id: str) -> str:
    """LIST of a token that says "it has ended" to who waits. Expires after a minute."""
    return _key("queues", alias, f"ended:{task_id}")


def queue_result(alias: str, task_id: str) -> str:
    """STRING, the whole of a successful task. Expires after its result_ttl."""
    return _key("queues", alias, f"result:{task_id}")


def queue_names(alias: str) -> str:
    """SET of the queues that are listed. A name goes when no task is left in any state, unless it is paused."""
    return _key("queues", alias, "names")


def queue_active(alias: str) -> str:
    """
    SET of the queues in which tasks may wait or run: those that workers of all queues ask. A name goes with that of
    the listing; where there are more than a hundred, as soon as nothing waits or runs.
    """
    return _key("queues", alias, "active")


def queue_paused(alias: str) -> str:
    """SET of the queues that are paused, by people. An entry goes on resume."""
    return _key("queues", alias, "paused")


def queue_ready(alias: str, queue: str) -> str:
    """ZSET id by rank (priority) and the millisecond it became runnable. Goes when claimed."""
    return _key("queues", alias, f"ready:{queue}")


def queue_delayed(alias: str, queue: str) -> str:
    """ZSET id by the microsecond it is due. Goes when promoted to ready."""
    return _key("queues", alias, f"delayed:{queue}")


def queue_parked(alias: str, limit: str) -> str:
    """ZSET "id queue" of tasks by place that wait for room under a limit. Goes when due. Expires after days."""
    return _key("queues", alias, f"parked:{limit}")


def queue_unparked(alias: str, call: str) -> str:
    """STRING, what was answered to who let a parked task be due, if it asks again. Expires after a minute."""
    return _key("queues", alias, f"unparked:{call}")


def queue_running(alias: str, queue: str) -> str:
    """ZSET id by the millisecond its lease ends. Goes when acked, given back or taken over."""
    return _key("queues", alias, f"running:{queue}")


def queue_dead(alias: str, queue: str) -> str:
    """ZSET id by the millisecond it died. Goes by dead_ttl and dead_limit."""
    return _key("queues", alias, f"dead:{queue}")


def queue_successful(alias: str, queue: str) -> str:
    """ZSET id by the millisecond it succeeded. Goes by result_ttl and successful_limit."""
    return _key("queues", alias, f"successful:{queue}")


def queue_cut(alias: str, queue: str) -> str:
    """STRING, how many starts were cut off: their worker ended before them. Expires 30 days after the last."""
    return _key("queues", alias, f"cut:{queue}")


def queue_wake(alias: str, queue: str) -> str:
    """LIST of at most one token that wakes a worker of the queue; it says "look". Goes with the queue's name."""
    return _key("queues", alias, f"wake:{queue}")


def queue_wake_all(alias: str) -> str:
    """LIST of at most one token that wakes a worker of all queues when a queue is used the first time."""
    return _key("queues", alias, "wake-all")


def queue_wake_poller(alias: str) -> str:
    """LIST of at most one token that wakes a poller when a task is due earlier than all others."""
    return _key("queues", alias, "wake-poller")


def queue_workers(alias: str) -> str:
    """ZSET worker id by the millisecond of its last heartbeat. Goes on leaving, or a day after the last."""
    return _key("queues", alias, "workers")


def queue_worker(alias: str, worker_id: str) -> str:
    """HASH, what a worker says of itself, and its last request with the answer. Expires a day after the last."""
    return _key("queues", alias, f"worker:{worker_id}")


def queue_order(alias: str, worker_id: str) -> str:
    """STRING, what a worker was asked to do: quiet or stop. Expires after a day."""
    return _key("queues", alias, f"order:{worker_id}")
