"""The task backend for settings.TASKS: {"default": {"BACKEND": "components.tasks.RedisBackend"}}."""

from components.services.queues.backend import RedisBackend

__all__ = ["RedisBackend"]
