"""
Retries: whether and when a failed task is tried again, according to its policy (policy.py) or the options of its
backend.
"""

from __future__ import annotations

import logging
from typing import Any

from components.conf import QueueOptions
from components.kit.compat import TaskResult
from components.services.queues import TaskInfo
from components.services.queues.new_task import LONGEST_DELAY
from components.services.queues.policy import doubled

logger = logging.getLogger(__name__)


def retry_after(
    info: TaskInfo, result: TaskResult[..., Any] | None, error: BaseException, options: QueueOptions
) -> float | None:
    """
    Return the seconds until the next attempt of a task that failed with *error*, or None if the failure is final.
    *result* is None if this worker does not know the task, perhaps because it runs older code.
    """
    task = result.task if result is not None else None
    if info.starts >= (getattr(task, "max_attempts", None) or options.max_attempts):
        return None
    backoff = getattr(task, "backoff", None)
    if not callable(backoff):
        first = options.backoff if backoff is None else backoff
        return doubled(first, options.max_backoff, info.starts)
    try:
        return _seconds(backoff(error, result))
    except BaseException as wrong:
        logger.exception("The backoff of %s failed; the task is not retried: %r", info.name, wrong)
        return None


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    pause = float(value)
    if not 0 <= pause <= LONGEST_DELAY:
        raise ValueError(
            f"it returned {value!r}; it must be None or a number of seconds, 0 to {LONGEST_DELAY:,}"
        )
    return pause
