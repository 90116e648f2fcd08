"""
Move the people to whom a person writes to the top of their recent contacts, which form fields then offer.

components.people calls this after the message was stored. An error is logged and does not affect the message. If the
process dies in between, the contact stays where it was. The name of a contact is looked up if it is not known yet.
Pages without scripts look it up again, and so does the code that creates a chat or adds members.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from asgiref.sync import sync_to_async

from components.exceptions import InvalidValue, RedisUnavailable
from components.kit.validation import check_several
from components.people import people
from components.services.autocomplete import RecentContacts
from components.services.autocomplete.folding import check_label

logger = logging.getLogger(__name__)

#: The most people that one message, or one addition to a chat, moves to the top: more would push out others.
_MOST = 10


def note(user: str, ids: Collection[str]) -> None:
    """Make *ids* recent contacts of *user*. The first id becomes the most recent."""
    with _logged(user):
        if wanted := _some(user, ids):
            names = people().names(wanted)
            RecentContacts(user).touch_all({id: _label(names, id) for id in wanted})


async def anote(user: str, ids: Collection[str], *, anew: bool = False) -> None:
    """Do what note() does, but query the database for unknown names only; with *anew*, for all."""
    with _logged(user):
        recent, wanted = RecentContacts(user), _some(user, ids)
        unnamed = wanted if anew or not wanted else await recent.atouch_all(dict.fromkeys(wanted, ""))
        if unnamed:
            names = await sync_to_async(people().names)(unnamed)
            await recent.atouch_all({id: _label(names, id) for id in unnamed})


def _some(user: str, ids: Iterable[str]) -> list[str]:
    """Return the first few of *ids* in reverse order, because the contact that is touched last comes first."""
    return [id for id in dict.fromkeys(check_several("ids", ids)) if id != user][:_MOST][::-1]


def _label(names: Mapping[str, str], id: str) -> str:
    """Return the name of a person, or nothing if it cannot be a label."""
    try:
        return check_label(names[id])[0]
    except (KeyError, InvalidValue):
        return ""


@contextmanager
def _logged(user: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        is_known = isinstance(error, RedisUnavailable)
        logger.warning("Could not update the recent contacts of %s: %s", user, error, exc_info=not is_known)
