"""A release of a lock that is sent again."""

from __future__ import annotations

from redis import Redis

from components.kit.at_once import at_once
from components.services.locks import Lock
from components.services.locks.drop_ins import RELEASE


def release_again(redis: Redis, held: Lock, token: bytes | str, fence: int) -> bool:
    """Send the release of that acquisition, as if its reply had been lost, and return what the script says."""
    return bool(
        at_once(RELEASE.run(redis, held.keys, token=token, asker=token, fence=fence, reason="released"))
    )
