"""
Failed tasks as events of Sentry, beside Sentry's own integration with Django. It needs sentry-sdk.

    COMPONENTS = {"RUN_MIDDLEWARE": ["components.observing.sentry.run"]}
"""

from collections.abc import Callable
from typing import Any

import sentry_sdk
from sentry_sdk.integrations.logging import ignore_logger

from components.kit.at_exit import at_sudden_end
from components.services.queues import TaskRun, is_cancelled

# The worker logs the end of each task there; what failed would be two events.
ignore_logger("components.done")
at_sudden_end(sentry_sdk.flush)


def run(run: TaskRun, call_next: Callable[[], Any]) -> Any:
    """
    Run the task in a scope of its own, and report its error unless the task is tried again or was cancelled.

    All events of the run, those of logged errors too, have the tags task, task_id, queue and attempt.
    """
    task = run.task
    with sentry_sdk.isolation_scope() as scope:
        scope.clear_breadcrumbs()  # of the task that this thread ran before
        scope.set_transaction_name(task.name, source="task")
        for name, value in {
            "task": task.name,
            "task_id": task.id,
            "queue": task.queue,
            "attempt": run.attempt,
        }.items():
            scope.set_tag(name, value)
        try:
            return call_next()
        except BaseException as error:  # a task may raise SystemExit as well
            if run.retry_in(error) is None and not is_cancelled():
                sentry_sdk.capture_exception(error)
            raise
