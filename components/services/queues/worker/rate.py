"""
Rate limits of tasks: a start counts as a call of the task's RateLimit.

If there is no room, the task is given back until its turn, which uses up no attempt, and the worker goes on with
others. It comes a little early, and its thread waits for the exact moment, so that nothing of the rate is lost on the
way through the queue.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from components.exceptions import RedisUnavailable
from components.kit.compat import TaskResult
from components.services.counters import pattern_of, tally
from components.services.queues.policy import rate_of

logger = logging.getLogger(__name__)

_EARLY = 0.02  # seconds by which a task comes before its turn
_NEAR = 0.05  # seconds for which a thread waits
_LATE = 0.01  # seconds that the function may start later than it was counted, without exceeding the rate
_RETRY = 1.0  # seconds until the next try if Redis does not answer


def turn_of(result: TaskResult[..., Any], task_id: str) -> float:
    """Count a start and return 0.0, or return the seconds until the task's turn. Raises any error of its rate_key."""
    limit = rate_of(result.task)
    if limit is None:
        return 0.0
    name = getattr(result.task, "rate_key", None)
    key = "" if name is None else name(*result.args, **result.kwargs)
    try:
        while seconds := limit.ask(key, caller=task_id, margin=_LATE):
            if seconds > _NEAR:
                tally("rates:postponed", of=pattern_of(limit.name))
                return seconds - _EARLY
            time.sleep(seconds)
    except RedisUnavailable as error:
        logger.warning("Could not check whether %r has room: %s", limit, error)
        return _RETRY
    return 0.0
