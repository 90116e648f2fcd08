"""
Limits of what people do with chats as a whole: how many one creates, into how many one is put, and how fast.

They hold where a person is named as the one who does it (*by*), and are settings of the site. What is counted lies
with the person: how many chats they have created, in an index in the slot of their inbox; in how many they are, by
the hints in it. Both may name chats that are over, or that the person has left. When a limit is reached, these are
cleared away before anybody is refused.
"""

from __future__ import annotations

from components.conf import conf
from components.exceptions import TooFast, TooManyChats
from components.kit.client import AnyRedis
from components.kit.ids import new_call
from components.kit.scripts import Script, idempotent, pipelined
from components.kit.stored import text_of
from components.services.chat.hints import YOUNG_AFTER_LEAVING
from components.services.chat.ids import is_id
from components.services.chat.keys import ChatKeys, InboxKeys

CHARGE = Script("chat/charge")


async def charge(client: AnyRedis, person: str, *, chat_id: str = "", people: int = 0) -> None:
    """
    Count a chat that *person* creates, and the people whom they put into a chat.

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
            f"There are {settings.max_chats_created:,} chats that {person!r} has created, which is the limit. A chat "
            "ends when its last member leaves."
        )
    if said == b"fast":
        seconds = facts[0] / 1000
        raise TooFast(
            f"{person!r} has created chats, or put people into chats, too fast: there is room in {seconds:g} s.",
            seconds,
        )


async def _clear_created(client: AnyRedis, person: str, now: int) -> None:
    """Forget the chats that *person* has created and that are over; young ones may be about to begin."""
    created = InboxKeys(person).created
    old = await idempotent(lambda: client.zrangebyscore(created, "-inf", now - YOUNG_AFTER_LEAVING))
    ids = [chat_id for chat_id in map(text_of, old) if is_id(chat_id)]
    found = await pipelined(client, ids, lambda pipe, id: pipe.hmget(ChatKeys(id).chat, "seq", "gone"))
    gone = [chat_id for chat_id, (seq, is_gone) in zip(ids, found, strict=True) if seq is None or is_gone]
    if gone:
        await idempotent(lambda: client.zrem(created, *gone))  # twice is as once
