"""
Tokens: what a holder or waiter is called in Redis. They say who it is, so that nothing else has to be stored.

A token reads host/process/thread/owner/random, each part percent-quoted; a coroutine gives the name of its task
for the thread's. What is called otherwise, by redis-py or by the caller, is a holder of whom nothing is known.
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


class GivenToken(bytes):
    """
    A token that the caller chose, so that several may use the same: *asker* tells their acquisitions apart.

    It is bytes, since redis-py's classes keep it and compare it.
    """

    asker: bytes

    @classmethod
    def of(cls, token: bytes, asker: bytes) -> GivenToken:
        """*token*, as one acquisition uses it that is called *asker*."""
        made = cls(token)
        made.asker = asker
        return made


def asker_of(token: bytes) -> bytes:
    """What names the acquisition with this token: the token itself, unless the caller chose it."""
    return token.asker if isinstance(token, GivenToken) else token


def new_token(owner: str | None = None, *, is_coroutine: bool = False) -> bytes:
    """A token that nobody else has. *owner* is for people to read."""
    task = asyncio.current_task() if is_coroutine else None
    where = task.get_name() if task else threading.current_thread().name
    return f"{_stem(os.getpid(), where, owner or '')}{os.urandom(8).hex()}".encode()


@lru_cache(maxsize=1_024)
def _stem(process: int, where: str, owner: str) -> str:
    return "".join(
        f"{quote(part[:100], safe=':@ ')}/" for part in (socket.gethostname(), str(process), where, owner)
    )


@dataclass(frozen=True)
class Holder:
    """Who holds or waits for something, as far as its token tells; "" and None are not known."""

    host: str = ""
    process: int | None = None
    thread: str = ""
    owner: str = ""

    @classmethod
    def of(cls, token: str) -> Holder:
        parts = [unquote(part) for part in token.split("/")]
        if len(parts) != _PARTS or not parts[1].isdecimal():
            return cls()
        return cls(parts[0], int(parts[1]), parts[2], parts[3])
