"""
What the policy of a task makes of one call of it: when it may run, what is the same call, what it waits for.

Stock tasks of Django have no policy, and are asked for it like the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone

from components.kit.compat import InvalidTask, Task
from components.services.queues import NewTask, normalize_call
from components.services.queues.new_task import LATEST, LONGEST_DELAY, new_id


def commit_of(task: Task[..., Any]) -> str | None:
    """The database whose commit a call of *task* waits for, if it has begun a transaction."""
    on_commit = getattr(task, "on_commit", False)
    return DEFAULT_DB_ALIAS if on_commit is True else on_commit or None


def named(new: NewTask) -> NewTask:
    """With an id, by which it is known from another that was stored in its place."""
    return new if new.id else replace(new, id=new_id())


def unique_key(task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """What makes a call of *task* the same as another; None if nothing does."""
    unique = getattr(task, "unique", False)
    if callable(unique):
        return str(unique(*args, **kwargs))
    if not unique:
        return None
    return json.dumps(normalize_call(task.module_path, args, kwargs), sort_keys=True)


def check_run_after(run_after: datetime | timedelta | None) -> None:
    """Raises InvalidTask for an instant that Redis cannot hold."""
    if isinstance(run_after, timedelta):
        is_too_late = run_after.total_seconds() > LONGEST_DELAY
    else:
        at = aware(run_after)
        is_too_late = at is not None and at > LATEST
    if is_too_late:
        raise InvalidTask(
            f"run_after is {run_after!r}; it must be at most {LATEST:%Y}, or {LONGEST_DELAY:,} seconds from now."
        )


def aware(run_after: datetime | None) -> datetime | None:
    """A naive instant is local, as in all of Django."""
    if run_after is not None and timezone.is_naive(run_after):
        return timezone.make_aware(run_after)
    return run_after
