"""
The contents of tasks that only some users may see: arguments, results and tracebacks.

They may hold secrets, such as the link in a queued mail that sets a password, so seeing them needs a separate
permission. The contents of a task that is declared as sensitive are shown to nobody. Hidden contents cannot be
searched either, because the results of a search would reveal them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TypeVar

from django.http import HttpRequest

from components.kit.compat import Task
from components.services.queues import TaskInfo
from components.services.queues.failures import Failure

_Task = TypeVar("_Task", TaskInfo, Failure)


@dataclass(frozen=True)
class Contents:
    """What one user may see of any task."""

    #: Whether the user has the permission.
    may_see: bool

    @classmethod
    def of(cls, request: HttpRequest) -> Contents:
        return cls(request.user.has_perm("components.view_arguments_queue"))

    def shows(self, info: TaskInfo | Failure) -> bool:
        """Return whether the user may see the arguments, the result and the tracebacks of this task."""
        return self.may_see and not is_sensitive(info)

    def cut(self, info: _Task) -> _Task:
        """Return the task without the contents that this user may not see. The classes of errors stay."""
        return info if self.shows(info) else info.without_contents()


def is_sensitive(info: TaskInfo | Failure) -> bool:
    """Return whether the task was marked as sensitive when it was pushed, or is declared as sensitive now."""
    return info.sensitive or getattr(loaded(info.name), "sensitive", False) is True


def loaded(name: str) -> Task[..., object] | None:
    """Return the task *name* if this process has imported its module, else None. Pages import no modules."""
    module, _, attribute = name.rpartition(".")
    found = getattr(sys.modules.get(module), attribute, None)
    return found if isinstance(found, Task) else None
