"""A clock that strikes every second."""

from __future__ import annotations

import os
from pathlib import Path

from components.kit.compat import TaskContext, task
from components.services.queues import every, periodic


@periodic(every(seconds=1), missed="all")
@task(takes_context=True)
def strike(context: TaskContext) -> None:
    """Write down the tick."""
    with Path(os.environ["STRIKES"]).open("a") as file:
        print(context.task_result.task.run_after, file=file, flush=True)
