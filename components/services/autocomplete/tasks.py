"""
The task that makes an address book what the table of its model is: what the control room asks a worker for.

A book is searched as it was until the new one is whole. A worker that dies leaves a load that another begins anew,
and one that is superseded by a later load ends, as that one reads the same table. Of one book no more than one waits
or runs, where the backend is ours. COMPONENTS["BOOK_TASKS"] and ["BOOK_QUEUE"] say which workers do it.
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
    timeout=float("inf"),  # of a million rows it takes a minute; it can be cancelled
)
def rebuild(name: str) -> int | None:
    """
    Rebuild the book *name*, or the books "guild:{}"; how many entries there are, None if a later load did it.

    Raises BookNotFound.
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
            raise  # those of them that come after it are still to be done
        logger.info("%s: %s", name, error)
        return None


def rebuilding() -> Task[..., int | None]:
    """rebuild, with the backend and the queue that the settings name now. Raises InvalidTask."""
    return rebuild.using(backend=conf().book_tasks, queue_name=conf().book_queue)
