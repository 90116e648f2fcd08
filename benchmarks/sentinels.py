"""
The guild directory of chapter 6 of "Redis in Action", rebuilt from its description with the same steps and round
trips.

A search for a prefix inserts two members at the ends of the range, and reads their ranks. Then it reads the members
between them and removes the two, in a transaction that is repeated if somebody else has written meanwhile. The
directory supports the letters a to z.
"""

from __future__ import annotations

import secrets

from redis import Redis
from redis.exceptions import WatchError

_LETTERS = "`abcdefghijklmnopqrstuvwxyz{"  # with the characters before and after them
_SHOWN = 10


def join(redis: Redis, guild: str, names: list[str]) -> None:
    redis.zadd(f"members:{guild}", dict.fromkeys(names, 0))


def complete(redis: Redis, guild: str, prefix: str) -> tuple[list[str], int]:
    """Return names that begin with *prefix*, and how many attempts the transaction took."""
    key, token, tries = f"members:{guild}", secrets.token_hex(8), 0
    before = prefix[:-1] + _LETTERS[_LETTERS.index(prefix[-1]) - 1]
    first, last = f"{before}{{{token}", f"{prefix}{{{token}"
    redis.zadd(key, {first: 0, last: 0})
    with redis.pipeline() as pipe:
        while True:
            tries += 1
            try:
                pipe.watch(key)
                start, stop = pipe.zrank(key, first), pipe.zrank(key, last)
                pipe.multi()
                pipe.zrem(key, first, last)
                pipe.zrange(key, start, min(start + _SHOWN - 1, stop - 2))
                found = pipe.execute()[-1]
                return [name.decode() for name in found if b"{" not in name], tries
            except WatchError:
                continue
