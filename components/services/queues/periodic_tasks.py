"""
Periodic tasks, declared in code, above @task.

Declarations are kept in the memory of the process. Workers and pollers push the tasks that are due
(worker/periodic.py), so no scheduler has to run. They find declarations in the "tasks" modules of all apps. Ticks are
stored under a name made of the task's path, its schedule and its arguments: if one of these changes, the task starts
over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, TypeVar, get_args

from components.kit.compat import Task
from components.kit.declarations import import_tasks
from components.services.queues.arguments import normalize
from components.services.queues.facts import LATE
from components.services.queues.policy import check_call
from components.services.queues.schedules import Schedule
from components.services.queues.ticks import Ticks

MissedPolicy = Literal["once", "skip", "all"]
_T = TypeVar("_T", bound="Task[..., Any]")
_declared: dict[tuple[str, str], PeriodicTask] = {}


@dataclass(frozen=True)
class PeriodicTask:
    """One declaration: call *task* with *args* and *kwargs* at each tick of *schedule*."""

    task: Task[..., Any]
    schedule: Schedule
    #: The treatment of ticks at which no worker ran; see docs/periodic-tasks.md.
    missed: MissedPolicy
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name under which its last tick is stored."""
        parts = [self.task.module_path, str(self.schedule)]
        if self.args or self.kwargs:
            arguments = json.dumps([self.args, self.kwargs], sort_keys=True)
            parts.append(f"#{sha256(arguments.encode()).hexdigest()[:8]}")
        return " ".join(parts)


@dataclass(frozen=True)
class TickInfo:
    """A periodic task as the control room shows it. Instants are UTC, by the clock of Redis."""

    periodic: PeriodicTask
    #: None if it has not ticked since a worker first saw it.
    last_at: datetime | None
    #: It is in the past while no worker runs; None if no worker has seen it yet.
    next_at: datetime | None
    #: Whether its ticks are skipped.
    is_paused: bool = False


def periodic(
    schedule: Schedule,
    *,
    missed: MissedPolicy = "once",
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Callable[[_T], _T]:
    """
    Declare that the decorated task runs with *args* and *kwargs* at each tick of *schedule*. It can be applied
    repeatedly.

    *missed* says what happens to the ticks at which no worker ran: "once" runs the latest of them, "skip" none,
    "all" each. Raises TypeError, ValueError or NotSerializable when the module is imported.
    """
    if not isinstance(schedule, Schedule):
        raise TypeError(
            f"@periodic was given {schedule!r}; it needs a schedule: @periodic(every(minutes=5)) or "
            '@periodic(cron("0 3 * * *")).'
        )
    if missed not in get_args(MissedPolicy):
        raise ValueError(
            f"@periodic was given missed={missed!r}; it must be one of {', '.join(get_args(MissedPolicy))}."
        )
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping | None):
        raise TypeError(
            f"@periodic was given args={args!r} and kwargs={kwargs!r}; they must be a list and a dict."
        )

    given = kwargs or {}

    def declare(task: _T) -> _T:
        if not isinstance(task, Task):
            name = getattr(task, "__qualname__", repr(task))
            raise TypeError(
                f"@periodic was put on {name}, which is not a task. Put it above @task, not below."
            )
        try:
            check_call(task, args, given)
        except TypeError as error:
            advice = "Give what it needs as @periodic(..., args=[...], kwargs={...})."
            raise TypeError(f"{error} {advice}") from None
        entry = PeriodicTask(task, schedule, missed, normalize(args, "args"), normalize(given, "kwargs"))
        known = _declared.setdefault((task.backend, entry.name), entry)
        for field, one, other in (
            ("missed", known.missed, missed),
            ("queue_name", known.task.queue_name, task.queue_name),
            ("priority", known.task.priority, task.priority),
        ):
            if one != other:
                raise ValueError(
                    f"{entry.name} is declared with {field}={one!r} and with {other!r}. Choose one, or give the "
                    "declarations different schedules or arguments: by these their ticks are told apart."
                )
        return task

    return declare


def declared(alias: str = "default") -> list[PeriodicTask]:
    """
    Return the periodic tasks of the backend *alias*, by name.

    The first call imports the "tasks" modules of all apps. If one raises an error, it is logged, and this process
    does not know the periodic tasks of that module.
    """
    import_tasks()
    return sorted(
        (entry for entry in _declared.values() if entry.task.backend == alias), key=lambda entry: entry.name
    )


def overview(alias: str = "default") -> list[TickInfo]:
    """Return the periodic tasks of *alias* and their last and next ticks. Raises RedisUnavailable."""
    entries, ticks = declared(alias), Ticks(alias)
    if not entries:
        return []
    infos, paused = tick_infos(entries, *ticks.look([entry.name for entry in entries])), ticks.paused()
    return [replace(info, is_paused=info.periodic.name in paused) for info in infos]


def tick_infos(
    entries: Sequence[PeriodicTask], now: datetime, seen: Mapping[str, datetime]
) -> list[TickInfo]:
    """Return what is known of *entries*, from the last tick of each name."""
    return [_info(entry, seen.get(entry.name), now) for entry in entries]


def late_ticks(infos: Sequence[TickInfo], now: datetime) -> list[TickInfo]:
    """Return those periodic tasks whose tick has been due for too long."""
    return [info for info in infos if info.next_at and now - info.next_at > LATE]


def _info(entry: PeriodicTask, seen: datetime | None, now: datetime) -> TickInfo:
    if seen is None:
        return TickInfo(entry, None, None)
    schedule = entry.schedule
    if seen > (following := schedule.next_after(now)):  # the clock had jumped ahead, so the tick is ignored
        return TickInfo(entry, None, following)
    # Or it is the instant at which the task became known.
    is_tick = schedule.next_after(seen - timedelta(microseconds=1)) == seen
    return TickInfo(entry, seen if is_tick else None, schedule.next_after(seen))
