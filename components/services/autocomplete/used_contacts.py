"""
Whom a person writes to comes first among his recent contacts, which the fields of pages offer then.

It is done after the message is stored, and is a hint: what goes wrong is logged, and changes nothing about the
message. A process that dies in between leaves a contact where he was. A name is asked for where a contact has none
yet; pages without scripts, and who makes a chat or adds members, tell it anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from asgiref.sync import sync_to_async

from components.exceptions import InvalidEntry, RedisUnavailable
from components.people import people
from components.services.autocomplete import RecentContacts
from components.services.autocomplete.folding import check_label

logger = logging.getLogger(__name__)

#: The first of those whom a message mentions, or who come into a chat at once. More would push out whom he knows.
_MOST = 10


def note(user: str, ids: Iterable[str]) -> None:
    """*user* has written to *ids*; the first of them is to be his latest contact."""
    with _apart(user):
        if wanted := _some(user, ids):
            names = people().names(wanted)
            RecentContacts(user).touch_all({id: _label(names, id) for id in wanted})


async def anote(user: str, ids: Iterable[str], *, anew: bool = False) -> None:
    """note(), awaited; the database is asked for names only where there are none yet, or *anew*."""
    with _apart(user):
        recent, wanted = RecentContacts(user), _some(user, ids)
        unnamed = wanted if anew or not wanted else await recent.atouch_all(dict.fromkeys(wanted, ""))
        if unnamed:
            names = await sync_to_async(people().names)(unnamed)
            await recent.atouch_all({id: _label(names, id) for id in unnamed})


def _some(user: str, ids: Iterable[str]) -> list[str]:
    """The first few of *ids*, the very first at the end, as who is touched last comes first."""
    return [id for id in dict.fromkeys(ids) if id != user][:_MOST][::-1]


def _label(names: Mapping[str, str], id: str) -> str:
    """His name, if it can be a label."""
    try:
        return check_label(names[id])[0]
    except (KeyError, InvalidEntry):
        return ""


@contextmanager
def _apart(user: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the message is stored, and must not be sent anew because of this
        is_known = isinstance(error, RedisUnavailable)
        logger.warning(
            "The contacts of %s do not know whom he wrote to: %s", user, error, exc_info=not is_known
        )
