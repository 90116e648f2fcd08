"""
What a request has set in motion: locks, fenced rows, tasks. The tour shows it after a purchase.

trading.py notes it. Nothing is kept unless somebody listens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Note = dict[str, Any]

_notes: ContextVar[list[Note] | None] = ContextVar("notes", default=None)


def note(what: str, **facts: object) -> None:
    """Note that something has happened, with facts that JSON can hold."""
    notes = _notes.get()
    if notes is not None:
        notes.append({"what": what, **facts})


@contextmanager
def listening() -> Iterator[list[Note]]:
    """Yield the list into which the code of the block, and the threads that it waits for, write."""
    notes: list[Note] = []
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)
