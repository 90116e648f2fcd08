"""
Ids of permits: <digest of the semaphore's name>/<weight>/<host>/<process>/<thread>/<owner>/<random>.

The process that asks makes the id, before it asks: so a request that is sent again is known for the same, and who
holds or waits needs no record. The digest tells the permit of another semaphore without asking Redis.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import sha256

from components.exceptions import ForeignPermit
from components.kit.holders import Holder, new_token
from components.kit.stored import number_of

_DIGITS = 12  # of the digest: two names of a project are not mistaken for each other
_ID = re.compile(rf"[0-9a-f]{{{_DIGITS}}}/[1-9][0-9]*/.+")


def new_id(name: str, weight: int, owner: str | None, *, is_coroutine: bool = False) -> str:
    """The id of a permit that nobody else has."""
    return f"{_digest(name)}/{weight}/{new_token(owner, is_coroutine=is_coroutine).decode()}"


def check_id(name: str, permit: object) -> str:
    """*permit*, if it is an id of a permit of this semaphore. Raises ForeignPermit."""
    if not isinstance(permit, str) or not _ID.fullmatch(permit):
        raise ForeignPermit(f"{permit!r} is no id of a permit, as Permit.id gives it.")
    if not permit.startswith(f"{_digest(name)}/"):
        raise ForeignPermit(f"The permit {permit} is not one of the semaphore {name!r}, but of another one.")
    return permit


def weight_of(permit: str) -> int:
    """Return its weight; 1 for what is no permit."""
    return number_of(permit.split("/")[1], 1) if permit.count("/") > 1 else 1


def holder_of(permit: str) -> Holder:
    """Return who asked for it; for what is no permit, a holder of this id."""
    return Holder.of(permit.split("/", 2)[-1])


@lru_cache(maxsize=1_024)
def _digest(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
