"""
Ids that need no central authority: of stored things, of single calls, and of the site that a process belongs to.

Stored things have UUIDs of version 7 (RFC 9562). These sort by creation time, and exactly so within one process.
"""

import time
from os import urandom
from threading import Lock
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import salted_hmac

from components.exceptions import ClientIdReused
from components.kit.translation import gettext

_guard = Lock()
_last = 0
_SALT = "components.kit.site"  # as in what is stored


def uuid7() -> str:
    """Return 32 hexadecimal digits that are greater than all that this process has made before."""
    global _last
    with _guard:
        # 48 bits are milliseconds and 12 bits a fraction. The number is counted up if the clock stands still or goes
        # back.
        _last = max(_last + 1, (time.time_ns() << 12) // 1_000_000)
        ticks = _last
    random = int.from_bytes(urandom(8)) >> 2
    return f"{ticks >> 12:012x}7{ticks & 0xFFF:03x}{0b10 << 62 | random:016x}"


def id_of(given: object) -> str:
    """Return the id of a thing as it is stored: a UUID, or text that is one, as its 32 digits in lower case."""
    text = str(given)
    try:
        return UUID(text).hex if len(text) in (32, 36) else text
    except ValueError:
        return text


def new_call() -> str:
    """Return a name for one call, by which a script recognises a repetition of it."""
    return urandom(8).hex()


def reused() -> ClientIdReused:
    """Return the error for a call whose client id came with other content before."""
    return ClientIdReused(
        gettext(
            "The client id was used with other content, which is stored; this is not. Use another client id."
        )
    )


def known_sites() -> list[str]:
    """
    Return what this site is called with its SECRET_KEY, and with each of SECRET_KEY_FALLBACKS: digests, which travel
    with the heartbeats of workers. Two projects that share a Redis by mistake have different keys, so strangers stand
    out.
    """
    try:
        keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    except ImproperlyConfigured:  # a worker can do without one
        return [""]
    return [salted_hmac(_SALT, "", secret=key, algorithm="sha256").hexdigest()[:12] for key in keys]
