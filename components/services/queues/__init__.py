"""
Task queues: push now, by delay or at an instant; claim under a lease; ack with the claimer's token.

tasks.py     TaskQueue, what producers and the admin use; execute_later, the book's name for a push
readers.py   what looks: counts, pages, search, one task
controls.py  what is done to pushed tasks and to workers: cancel, delete, send again, wait for, quiet, stop
consumers.py Consumer, a worker's side: advance, renew, release, wait
records.py   what they all speak of: NewTask, TaskInfo, QueueStats, WorkerInfo
formats.py   how a task is written down, and how it is read
periodic.py  Ticks, which ticks of periodic tasks were taken
arguments.py what a task's arguments may be

A task is an id in exactly one sorted set of its queue (ready, delayed, running, dead), with its record in
one hash of the backend alias; a successful one is a result with an expiry. Every step is one script, so
a process that dies between two steps leaves a whole task, and its lease brings it back.
(Redis in Action, 6.4)
"""

from components.services.queues.arguments import normalize, normalize_call
from components.services.queues.consumers import Claimed, Consumer, Finished, Step
from components.services.queues.controls import Cancelled, Resent
from components.services.queues.periodic import Ticks
from components.services.queues.records import (
    NewTask,
    Progress,
    QueueStats,
    State,
    TaskFailure,
    TaskInfo,
    WorkerInfo,
)
from components.services.queues.tasks import TaskQueue, execute_later

__all__ = [
    "Cancelled",
    "Claimed",
    "Consumer",
    "Finished",
    "NewTask",
    "Progress",
    "QueueStats",
    "Resent",
    "State",
    "Step",
    "TaskFailure",
    "TaskInfo",
    "TaskQueue",
    "Ticks",
    "WorkerInfo",
    "execute_later",
    "normalize",
    "normalize_call",
]
