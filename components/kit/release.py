"""
The format of everything that this app keeps in Redis: one number, which is kept there, too.

Processes that begin to work, the doctor and /readyz look at it. A release counts it up if the one before could not go
on beside it; then each refuses what the other has stored. Formats of single records are another matter.
"""

from contextlib import suppress
from typing import Any

from components import __version__
from components.conf import conf
from components.exceptions import RedisRefused, UnknownStoredFormat
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.keyspace import stem

FORMAT = 2


def check_format() -> None:
    """Note the format where none is noted. Raises UnknownStoredFormat if it is another, and RedisUnavailable."""
    client: Any = get_client()
    with redis_errors():
        stored = client.get(key())
    if stored is None:
        with suppress(RedisRefused), redis_errors():  # a full server, from which workers may still take tasks
            client.set(key(), FORMAT, nx=True)
        with redis_errors():
            stored = client.get(key())
    if stored not in (None, b"%d" % FORMAT):
        raise UnknownStoredFormat(
            f"What this app has stored in the Redis of CACHES[{conf().cache!r}] has the format {stored!r}, and "
            f"release {__version__} reads and writes {FORMAT}. Run the release that has stored it, or empty that "
            "database."
        )


def key() -> str:
    """STRING number of the format of all that is stored. Stays."""
    return f"{stem('format', 'all')}number"
