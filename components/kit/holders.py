"""
Holders: who holds something under a lease, or waits for it, as its token in Redis tells.

A token reads host/process/thread/owner/random, each part percent-quoted; a coroutine gives the name of its task in
place of the thread's. So nothing else has to be stored about a holder. A token of another form, such as redis-py's or
the caller's own, tells nothing about its holder.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

_PARTS = 5


def new_token(owner: str | None = None, *, is_coroutine: bool = False) -> bytes:
    """Return a token that nobody else has. *owner* is for people to read."""
    task = asyncio.current_task() if is_coroutine else None
    where = task.get_name() if task else threading.current_thread().name
    return f"{_stem(os.getpid(), where, owner or '')}{os.urandom(8).hex()}".encode()


@lru_cache(maxsize=1_024)
def _stem(process: int, where: str, owner: str) -> str:
    parts = (socket.gethostname(), str(process), where, owner)
    return "".join(f"{quote(part[:100], safe=':@ ')}/" for part in parts)


@dataclass(frozen=True)
class Holder:
    """Who holds something or waits for it, as far as the token tells; "" and None if that is not known."""

    host: str = ""
    process: int | None = None
    thread: str = ""
    owner: str = ""

    @classmethod
    def of(cls, token: str) -> Holder:
        """Return the holder with this token."""
        parts = [unquote(part) for part in token.split("/")]
        if len(parts) != _PARTS or not parts[1].isdecimal():
            return cls()
        return cls(parts[0], int(parts[1]), parts[2], parts[3])
