"""
RedisBackend in the parts that Django's tests give to their two backends: what is pushed stays, or runs at once.

Both add only what those tests ask of a backend beyond its contract.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from asgiref.sync import sync_to_async

from components.kit.client import get_client
from components.kit.compat import Task, TaskResult, TaskResultStatus
from components.services.queues import State
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.inline import run_ready


class Dummy(RedisBackend):
    """Keeps what is enqueued, as DummyBackend does, and shows all of it."""

    def clear(self) -> None:
        get_client().flushdb()  # the server is this test process' own

    @property
    def results(self) -> list[Stored]:
        """All there are, the first enqueued first."""
        infos = [
            info
            for queue in self.queue.all_names()
            for state in get_args(State)
            for info in self.queue.tasks(queue, state)
        ]
        return [Stored(self, self.to_result(info)) for info in sorted(infos, key=lambda info: info.id)]


class Stored:
    """
    A result as it is in Redis. Django's tests set its status to see a change of what is stored: here a
    worker has to bring it about.
    """

    def __init__(self, backend: Dummy, result: TaskResult[..., Any]) -> None:
        self._backend = backend
        self._result = result

    def __eq__(self, other: object) -> bool:
        return self._result == other

    __hash__ = None  # type: ignore[assignment]

    @property
    def status(self) -> TaskResultStatus:
        return self._backend.get_result(self._result.id).status

    @status.setter
    def status(self, status: TaskResultStatus) -> None:
        run_ready(self._backend)
        assert self.status == status, f"the worker has brought it to {self.status}"


class Immediate(RedisBackend):
    """Runs what is enqueued before it returns, as ImmediateBackend does: through Redis, the way a worker does."""

    def enqueue(  # type: ignore[override]
        self, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[..., Any]:
        result = super().enqueue(task, args, kwargs)
        run_ready(self)
        return self.get_result(result.id)

    async def aenqueue(  # type: ignore[override]
        self, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[..., Any]:
        return await sync_to_async(self.enqueue)(task, args, kwargs)
