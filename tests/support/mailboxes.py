"""Helpers for tests of mailboxes."""

from __future__ import annotations

import time
from collections.abc import Iterable

from redis import Redis

from components.services.mailboxes import Mail
from components.services.mailboxes.keys import MailboxKeys

DAY = 86_400  # seconds


def texts(mails: Iterable[Mail]) -> list[str]:
    return [mail.text for mail in mails]


def sent(name: str, *, ago: int = 0) -> str:
    """Return the key of the pushes of the day *ago* days before today."""
    return f"{MailboxKeys(name).sent}:{int(time.time()) // DAY - ago}"


def tomorrow(redis: Redis, name: str) -> None:
    """Let a day pass for the memory of pushes into a mailbox, which expires."""
    for ago in (2, 1, 0):
        left = redis.pttl(sent(name, ago=ago)) - DAY * 1000
        if redis.exists(sent(name, ago=ago)):
            redis.rename(sent(name, ago=ago), sent(name, ago=ago + 1))
            redis.pexpire(sent(name, ago=ago + 1), left)
