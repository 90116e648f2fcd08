"""Import Django Tasks: django.tasks from Django 6.0 on, the backport django_tasks on 5.2."""

from typing import TYPE_CHECKING

import django
from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import default_task_backend, task, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json
else:
    try:
        import django_tasks.exceptions
    except ImportError:
        raise ImproperlyConfigured(
            f"Django {django.__version__} has no django.tasks, and its backport is not installed. "
            "Run pip install 'django-redis-components[django52]', and add \"django_tasks\" to INSTALLED_APPS."
        ) from None
    from django_tasks import default_task_backend, task, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskContext, TaskError, TaskResult, TaskResultStatus
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started
    from django_tasks.utils import normalize_json

    # Releases up to 0.12 call it InvalidTaskError.
    InvalidTask = (
        getattr(django_tasks.exceptions, "InvalidTask", None) or django_tasks.exceptions.InvalidTaskError
    )

__all__ = [
    "BaseTaskBackend",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "default_task_backend",
    "normalize_json",
    "task",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
