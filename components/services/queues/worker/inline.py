"""
Running ready tasks in the caller's thread, for tests: no loop, no signals, one task after another.

Each task passes through claim, Execution and ack, as in a worker. But the task uses the caller's database connection,
so it sees uncommitted changes of the test, and the test sees those of the task.
"""

from __future__ import annotations

from typing import Any

from components.kit.compat import Task
from components.services.queues import Claimed, Consumer, Finished, TaskInfo
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.execution import Execution
from components.services.queues.worker.runs import Run, ServerClock
from components.services.queues.worker.tasks import TOO_NEW_DELAY


def run_ready(backend: RedisBackend, limit: int | None = None) -> list[TaskInfo]:
    """Run the ready tasks of *backend*, by queue, until none is left or *limit* have run. Return how they ended."""
    consumer, clock, ended = Consumer(backend.alias), ServerClock(), list[TaskInfo | None]()
    execution = InlineExecution(backend, clock)
    try:
        while limit is None or len(ended) < limit:
            step = consumer.advance(consumer.request(dict.fromkeys(backend.queue.names(), 1), want=1))
            clock.set(step.now)
            if not (step.claimed or step.is_behind):
                break
            ran = (claimed.id for claimed in step.claimed if _run(execution, consumer, claimed))
            ended += map(backend.queue.get, ran)
    finally:
        consumer.leave()
    return [info for info in ended if info is not None]


class InlineExecution(Execution):
    """An Execution that calls tasks as Django's own Task.call() does, without closing the caller's connections."""

    def apply(self, run: Run, task: Task[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return task.call(*args, **kwargs)

    def prepare(self) -> None:
        pass


def _run(execution: Execution, consumer: Consumer, claimed: Claimed) -> bool:
    """Run a task. Return whether it could run. If it is interrupted (KeyboardInterrupt), give it back."""
    try:
        finished = execution.run(Run(claimed, consumer, execution.clock))
    except BaseException:
        consumer.release([claimed])
        raise
    if not isinstance(finished, Finished):
        consumer.release([claimed], delay=finished if isinstance(finished, float) else TOO_NEW_DELAY)
        return False
    consumer.advance(consumer.request({}, 0, [finished]))
    return True
