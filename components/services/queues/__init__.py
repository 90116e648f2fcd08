"""
Task queues: push a task to run now, after a delay or at an instant; claim it under a lease; ack it with the token of
the claim.

A task is an id in exactly one sorted set of its queue (ready, delayed, running, dead), and a record in a hash of the
backend alias. A successful task is a result with an expiry. Every step is one script, so a process that dies between
two steps leaves a complete task, which runs again after its lease has ended. (Redis in Action, 6.4)
"""

# Read queue.py, consumer.py and lua/advance.lua first, then policy.py and backend.py, then worker/.

from components.services.queues.arguments import normalize, normalize_call
from components.services.queues.chains import TaskRun
from components.services.queues.consumer import Claimed, Consumer, Finished, Step
from components.services.queues.facts import (
    Cancelled,
    Look,
    Progress,
    QueueStats,
    Resent,
    State,
    TaskFailure,
    TaskInfo,
    WorkerInfo,
)
from components.services.queues.new_task import NewTask
from components.services.queues.periodic_tasks import MissedPolicy, PeriodicTask, periodic
from components.services.queues.policy import (
    Concurrency,
    PolicyTask,
    aprogress,
    exponential,
    is_cancelled,
    progress,
    running_task,
    task,
)
from components.services.queues.queue import TaskQueue, execute_later
from components.services.queues.schedules import Schedule, cron, every
from components.services.queues.ticks import TickRun, Ticks

__all__ = [
    "Cancelled",
    "Claimed",
    "Concurrency",
    "Consumer",
    "Finished",
    "Look",
    "MissedPolicy",
    "NewTask",
    "PeriodicTask",
    "PolicyTask",
    "Progress",
    "QueueStats",
    "Resent",
    "Schedule",
    "State",
    "Step",
    "TaskFailure",
    "TaskInfo",
    "TaskQueue",
    "TaskRun",
    "TickRun",
    "Ticks",
    "WorkerInfo",
    "aprogress",
    "cron",
    "every",
    "execute_later",
    "exponential",
    "is_cancelled",
    "normalize",
    "normalize_call",
    "periodic",
    "progress",
    "running_task",
    "task",
]
