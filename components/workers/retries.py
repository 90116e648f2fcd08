"""
Whether a task that failed is tried again, and when.

The delay doubles with each attempt, and a random half is taken off it, so that tasks that failed together do not
come back together. A task's policy may say otherwise (components/tasks.py).
"""

from __future__ import annotations

import logging
import random
from typing import Any

from components.compat import TaskResult
from components.conf import QueueOptions
from components.services.queues import TaskInfo
from components.services.queues.tasks import LONGEST_DELAY

logger = logging.getLogger(__name__)


def retry_after(
    info: TaskInfo, result: TaskResult[..., Any] | None, error: BaseException, options: QueueOptions
) -> float | None:
    """The seconds until the next attempt of a task that failed with *error*; None if there is none."""
    task = result.task if result is not None else None
    most = getattr(task, "max_attempts", None) or options.max_attempts
    if info.starts >= most:
        return None
    backoff = getattr(task, "backoff", None)
    if callable(backoff):
        try:
            return _seconds(backoff(error, result))
        except Exception as wrong:
            logger.exception("The backoff of %s failed; the task is not retried: %r", info.name, wrong)
            return None
    first = options.backoff if backoff is None else backoff
    pause = min(options.max_backoff, first * 2.0 ** min(info.starts - 1, 60))
    return random.uniform(pause / 2, pause)


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    pause = float(value)
    if not 0 <= pause <= LONGEST_DELAY:
        raise ValueError(f"it said {value!r}, which is no number of seconds, 0 to {LONGEST_DELAY:,}")
    return pause
