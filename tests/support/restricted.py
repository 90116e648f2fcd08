"""
A pytest plugin: the project's Redis is used as the user of RESTRICTED_TO, with the rights that `manage.py acl` gives
it, while what tests do to the server themselves may do all.

    RESTRICTED_TO=worker python -m pytest tests/queues
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from redis import Redis
from redis.exceptions import ConnectionError

from components import testing
from components.kit.rights import rights

USER = os.environ.get("RESTRICTED_TO", "")
PASSWORD = "only-for-tests"

_redis_at = testing.redis_at


def add_user(client: Redis, user: str) -> None:
    client.execute_command("ACL SETUSER", user, "reset", "on", f">{PASSWORD}", *rights(user))


def as_user(url: str, user: str) -> str:
    """Return *url* with the name and the password of *user*."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:{PASSWORD}@{parts.netloc.rpartition('@')[2]}").geturl()


@contextmanager
def restricted_redis_at(url: str, **options: Any) -> Iterator[Redis]:
    with Redis.from_url(url) as everything:
        with suppress(ConnectionError):  # a server that is away on purpose
            add_user(everything, USER)
        with _redis_at(as_user(url, USER), **options):
            yield everything


if USER:
    testing.redis_at = restricted_redis_at
