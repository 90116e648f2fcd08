"""
Producers: they push their share of the plan's tasks over its time, and note what was accepted.

    python -m tests.chaos.producers NAME COUNT     # as a process, with the environment of a worker

A producer that is told that Redis is away pushes the same tasks again, under the same ids, until they are accepted.
Now and then all are silent for some seconds: what is done then, workers have noticed without being woken by pushes.
For each task it writes <id> <kind> <queue> <id that the push has returned>.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from components.exceptions import RedisUnavailable
from components.services.queues import NewTask, TaskInfo, TaskQueue
from tests.chaos import plan

_BATCH = 50
_BUSY, _SILENT = 5.0, 3.0  # seconds, in turn


class Producer:
    """Pushes *count* tasks; *recent* are the latest, (id, kind, queue) each."""

    def __init__(self, folder: Path, name: str, count: int) -> None:
        self._path = folder / f"{name}.pushed"
        self._name, self._count = name, count
        self.recent: deque[tuple[str, str, str]] = deque(maxlen=1_000)

    def run(self) -> None:
        began, busy = time.monotonic(), plan.SECONDS * _BUSY / (_BUSY + _SILENT)
        planned = plan.tasks(self._count, self._name)
        with self._path.open("w") as file:
            for number, batch in enumerate(_batches(planned)):
                at = number * busy * _BATCH / self._count
                at += at // _BUSY * _SILENT
                time.sleep(max(0.0, began + at - time.monotonic()))
                stored = _push([task for _kind, task in batch])
                for (kind, task), info in zip(batch, stored, strict=True):
                    assert info is not None
                    assert task.id is not None
                    self.recent.append((info.id, kind, task.queue))
                    print(task.id, kind, task.queue, info.id, file=file, flush=True)


def _batches(planned: Iterator[tuple[str, NewTask]]) -> Iterator[list[tuple[str, NewTask]]]:
    while batch := list(islice(planned, _BATCH)):
        yield batch


def _push(tasks: list[NewTask]) -> list[TaskInfo | None]:
    queue = TaskQueue()
    while True:
        try:
            return queue.push_many(tasks)
        except RedisUnavailable:
            time.sleep(0.05)


if __name__ == "__main__":
    import django

    django.setup()
    Producer(Path(os.environ["CHAOS_LEDGER"]), sys.argv[1], int(sys.argv[2])).run()
