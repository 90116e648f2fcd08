"""
The task that loads an address book from the table of its model. The control room enqueues it.

Searches use the old book until the new one is complete. If the worker dies, another worker begins the load again. If
a later load supersedes this one, the task ends, because that load reads the same table. With this app's backend, each
book has at most one waiting or running task. COMPONENTS["BOOK_TASKS"] and ["BOOK_QUEUE"] name the TASKS alias and the
queue.
"""

from __future__ import annotations

import logging

from components.conf import conf
from components.exceptions import BookNotFound, LoadSuperseded, TaskCancelled
from components.kit.compat import Task
from components.services.autocomplete.models import ModelBooks, feeding
from components.services.queues import is_cancelled, progress, task

logger = logging.getLogger(__name__)


@task(
    backend=conf().book_tasks,
    queue_name=conf().book_queue,
    unique=True,
    max_attempts=3,
    timeout=float("inf"),  # no limit: a million rows take a minute, and the task can be cancelled
)
def rebuild(name: str) -> int | None:
    """
    Rebuild the book *name*, or all books "guild:{}". Return how many entries there are, or None if a later load
    superseded this one. Raises BookNotFound.
    """
    fed = feeding(name)
    if fed is None:
        raise BookNotFound(f"No model feeds the address book {name!r} in this process.")

    def told(count: int) -> None:
        progress(count, note=name)
        if is_cancelled():
            raise TaskCancelled("The rebuild was cancelled. The book is as it was.")

    try:
        return fed.rebuild(told)
    except LoadSuperseded as error:
        if isinstance(fed, ModelBooks):
            raise  # the books after this one are not rebuilt yet
        logger.info("%s: %s", name, error)
        return None


def rebuilding() -> Task[..., int | None]:
    """Return the task with the backend and the queue that the settings name now. Raises InvalidTask."""
    return rebuild.using(backend=conf().book_tasks, queue_name=conf().book_queue)
