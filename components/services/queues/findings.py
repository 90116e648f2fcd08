"""
What is wrong with task queues in a running site, for `manage.py doctor`: queues without workers, workers and pollers
that are late, tasks that this project does not have, workers of another site.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from django.core.checks import CheckMessage, Error, Warning

from components.exceptions import UnknownTask
from components.kit.site import known_sites
from components.services.queues import QueueStats, State, TaskQueue, WorkerInfo
from components.services.queues.backend import redis_aliases, resolve
from components.services.queues.facts import late_queues, unserved
from components.services.queues.periodic_tasks import late_ticks, overview

#: Tasks of a queue, in each state, whose names are looked up.
_LOOKED_AT = 100
_STATES: tuple[State, ...] = ("ready", "delayed", "dead")


def examine() -> Iterator[CheckMessage]:
    """Yield what is wrong with the queues of all aliases on Redis. Raises RedisUnavailable."""
    for alias in redis_aliases():
        queues, workers = TaskQueue(alias).overview()
        yield from _strangers(alias, workers)
        yield from _without_workers(alias, queues, workers)
        yield from _late(alias, queues, workers)
        for queue in queues:
            yield from _unknown(alias, queue.name)


def _strangers(alias: str, workers: Iterable[WorkerInfo]) -> Iterator[CheckMessage]:
    known = ["", *known_sites()]
    hosts = {worker.host for worker in workers if worker.alive and worker.site not in known}
    if hosts:
        yield Error(
            f"Workers of another project or environment, on {_listed(hosts)}, take the tasks of TASKS[{alias!r}], "
            "because they use the same prefix in the same database of Redis.",
            hint='Give each its own COMPONENTS["PREFIX"], or a database of its own. If they do belong to this site, '
            "give all its processes the same SECRET_KEY.",
            id="components.E111",
        )


def _without_workers(
    alias: str, queues: list[QueueStats], workers: list[WorkerInfo]
) -> Iterator[CheckMessage]:
    waiting = unserved(queues, workers)
    for queue in waiting:
        yield Error(
            f"In the queue {queue.name!r} of TASKS[{alias!r}], tasks wait ({queue.ready:,}, the oldest for "
            f"{queue.oldest_age or 0:.0f} s), and no worker serves it.",
            hint=f"Run `manage.py runworker --backend {alias} -q {queue.name}`, or without -q for all queues.",
            id="components.E112",
        )
    if not waiting and not any(worker.alive and worker.kind == "worker" for worker in workers):
        yield Warning(
            f"No worker runs for TASKS[{alias!r}], so tasks that are enqueued will wait.",
            hint=f"Run `manage.py runworker --backend {alias}`.",
            id="components.W113",
        )


def _late(alias: str, queues: list[QueueStats], workers: list[WorkerInfo]) -> Iterator[CheckMessage]:
    lost = [worker for worker in workers if not worker.alive]
    if lost:
        last = max(worker.seen_at for worker in lost)
        yield Warning(
            f"Of TASKS[{alias!r}], {len(lost)} workers or pollers fell silent without taking leave, the last at "
            f"{last:%Y-%m-%d %H:%M:%S} UTC: {_listed(worker.id for worker in lost)}.",
            hint="They were killed, hang, or cannot reach Redis: look into their logs. Others have taken over their "
            "tasks. They are forgotten after a day.",
            id="components.W114",
        )
    now = datetime.now(UTC)  # by the clock of this machine
    for queue in late_queues(queues, now):
        yield Error(
            f"In the queue {queue.name!r} of TASKS[{alias!r}], delayed tasks are late: the first was due at "
            f"{queue.next_due_at:%Y-%m-%d %H:%M:%S} UTC.",
            hint=f"Run `manage.py pollqueue --backend {alias}`, or a worker that is sometimes idle.",
            id="components.E115",
        )
    if overdue := late_ticks(overview(alias), now):
        yield Error(
            f"Periodic tasks of TASKS[{alias!r}] are late: {_listed(info.periodic.name for info in overdue)}.",
            hint=f"Run `manage.py pollqueue --backend {alias}`, or a worker that is sometimes idle.",
            id="components.E116",
        )


def _unknown(alias: str, queue: str) -> Iterator[CheckMessage]:
    unknown = dict[str, str]()
    for state in _STATES:
        for info in TaskQueue(alias).tasks(queue, state, limit=_LOOKED_AT):
            if info.name and info.name not in unknown:
                try:
                    resolve(info.name)
                except UnknownTask as error:
                    unknown[info.name] = (
                        f"A task in the queue {queue!r} of TASKS[{alias!r}] is {state}. {error}"
                    )
                except Exception as error:  # noqa: BLE001  (importing a module may raise anything)
                    unknown[info.name] = (
                        f"A task in the queue {queue!r} of TASKS[{alias!r}] is {state}, and importing the module of "
                        f"{info.name!r} raises {error!r}."
                    )
    for said in unknown.values():
        yield Warning(
            said,
            hint="If it was renamed, keep its old name in its old module, as in `old_name = new_name`, until no task "
            "has it any more. If it belongs to another project, give each project its own "
            'COMPONENTS["PREFIX"]. If nobody needs it, cancel or delete it on the page Queues of the admin.',
            id="components.W117",
        )


def _listed(names: Iterable[str], most: int = 5) -> str:
    found = sorted(names)
    more = f" and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
