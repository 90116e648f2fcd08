"""
Limits across all chats: how many chats a person may create, how many they may be in, and how fast they may add
people.

The limits are settings of the site, and apply if a person is given as the one who acts (*by*). The counts are stored
with the person: the chats that they created in an index in the slot of their inbox, the chats that they are in as the
hints of the inbox. Both may list chats that are gone or that the person has left. When a limit is reached, these are
removed before anybody is refused.
"""

from components.conf import conf
from components.exceptions import TooFast, TooManyChats
from components.kit.client import AnyRedis
from components.kit.decoding import text_of
from components.kit.ids import new_call
from components.kit.scripts import Script, idempotent, pipelined
from components.kit.translation import gettext, grouped
from components.services.chat.ids import is_id
from components.services.chat.inbox_index import YOUNG_AFTER_LEAVING
from components.services.chat.keys import ChatKeys, InboxKeys

CHARGE = Script("chat/charge")


async def charge(client: AnyRedis, person: str, *, chat_id: str = "", people: int = 0) -> None:
    """
    Count a chat that *person* creates, or the people whom they add to a chat.

    Raises TooFast, TooManyChats; nothing is counted then.
    """
    settings = conf()
    args = {
        "id": chat_id,
        "call": new_call(),
        "people": people,
        "create_limit": settings.chat_create_limit,
        "create_period": round(settings.chat_create_period * 1000),
        "add_limit": settings.chat_add_limit,
        "add_period": round(settings.chat_add_period * 1000),
        "most_created": settings.max_chats_created,
    }
    said, *facts = await CHARGE.run(client, InboxKeys(person), **args)
    if said == b"full":
        await _clear_created(client, person, facts[0])
        said, *facts = await CHARGE.run(client, InboxKeys(person), **args)
    if said == b"full":
        raise TooManyChats(
            gettext(
                "%(person)r has created %(most)s chats, which is the limit. A chat is deleted when its last member "
                "leaves."
            )
            % {"person": person, "most": grouped(settings.max_chats_created)}
        )
    if said == b"fast":
        seconds = facts[0] / 1000
        fast = gettext(
            "%(person)r created chats, or added people to chats, too fast. Try again in %(seconds)s s."
        )
        raise TooFast(fast % {"person": person, "seconds": f"{seconds:g}"}, seconds)


async def _clear_created(client: AnyRedis, person: str, now: int) -> None:
    """
    Remove chats that no longer exist from those that *person* created. Young ones stay: they may be about to be
    created.
    """
    created = InboxKeys(person).created
    old = await idempotent(lambda: client.zrangebyscore(created, "-inf", now - YOUNG_AFTER_LEAVING))
    ids = [chat_id for chat_id in map(text_of, old) if is_id(chat_id)]
    found = await pipelined(client, ids, lambda pipe, id: pipe.hmget(ChatKeys(id).chat, "seq", "gone"))
    gone = [chat_id for chat_id, (seq, is_gone) in zip(ids, found, strict=True) if seq is None or is_gone]
    if gone:
        await idempotent(lambda: client.zrem(created, *gone))  # safe to repeat
