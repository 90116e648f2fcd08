"""
Limits of what people do with chats as a whole: how many one creates, into how many one is put, and how fast.

They hold where a person is named as the one who does it (*by*), and are settings of the site. What is counted lies
with the person, not with the chats: how many chats they have created, in an index in the slot of their inbox; in how
many they are, by the hints in it. Both may name chats that are over, or that the person has left. When a limit is
reached, these are cleared away before anybody is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from components.conf import conf
from components.exceptions import TooFast, TooManyChats
from components.kit.client import AnyRedis
from components.kit.scripts import reading
from components.kit.stored import text_of
from components.services.chat import core
from components.services.chat.ids import is_id, new_call
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.chat.readers import ask

_LOOKED_AT = 3  # persons whose inboxes are cleared up for one request


async def charge(client: AnyRedis, person: str, *, chat_id: str = "", people: int = 0) -> None:
    """
    Count a chat that *person* creates, and the people whom they put into a chat.

    Raises TooFast, TooManyChats; nothing is counted then.
    """
    settings = conf()
    args: list[str | int] = [chat_id, new_call(), people]
    args += [settings.chat_create_limit, round(settings.chat_create_period * 1000)]
    args += [settings.chat_add_limit, round(settings.chat_add_period * 1000), settings.max_chats_created]
    said, *facts = await core.charge.acall(client, keys=core.keys_of_limits(person), args=args)
    if said == b"full":
        await _clear_created(client, person, facts[0])
        said, *facts = await core.charge.acall(client, keys=core.keys_of_limits(person), args=args)
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


async def check_room(client: AnyRedis, chat_id: str, persons: Sequence[str]) -> None:
    """Raise TooManyChats unless each of *persons* may be in one chat more."""
    full = await _full(client, chat_id, persons)
    for person in full[:_LOOKED_AT]:
        await _clear_hints(client, person)
    if full and (full := await _full(client, chat_id, full)):
        shown = ", ".join(map(repr, full[:5]))[:200]
        raise TooManyChats(
            f"Nobody may be in more than {conf().max_chats_joined:,} chats. In as many already: {shown}."
        )


async def hint_all(
    client: AnyRedis, chat_id: str, persons: Sequence[str], *, is_limited: bool = False
) -> None:
    """Note the chat in the inboxes of *persons*. Raises TooManyChats if one *is_limited* and full."""
    most = conf().max_chats_joined if is_limited else 0
    calls = [(core.keys_of_inbox(person)[:1], [chat_id, most, 1]) for person in persons]
    while not all(await core.hint.amany(client, calls)):
        # Others have put them into chats since there was room.
        await check_room(client, chat_id, persons)


async def _full(client: AnyRedis, chat_id: str, persons: Sequence[str]) -> list[str]:
    if not (most := conf().max_chats_joined):
        return []
    calls = [(core.keys_of_inbox(person)[:1], [chat_id, most, 0]) for person in persons]
    has_room = await core.hint.amany(client, calls)
    return [person for person, room in zip(persons, has_room, strict=True) if not room]


async def _clear_hints(client: AnyRedis, person: str) -> None:
    """Forget the chats that *person* is not in any more."""
    hints = await reading(lambda: client.zrange(InboxKeys(person).hints, 0, -1))
    ids = [chat_id for chat_id in map(text_of, hints) if is_id(chat_id)]
    found = await ask(client, ids, lambda pipe, id: pipe.hexists(ChatKeys(id).members, person))
    if gone := [chat_id for chat_id, is_member in zip(ids, found, strict=True) if not is_member]:
        await core.forget_hints(client, person, gone, young=core.YOUNG_AFTER_LEAVING)


async def _clear_created(client: AnyRedis, person: str, now: int) -> None:
    """Forget the chats that *person* has created and that are over; young ones may be about to begin."""
    created = InboxKeys(person).created
    old = await reading(lambda: client.zrangebyscore(created, "-inf", now - core.YOUNG_AFTER_LEAVING))
    ids = [chat_id for chat_id in map(text_of, old) if is_id(chat_id)]
    found = await ask(client, ids, lambda pipe, id: pipe.hmget(ChatKeys(id).chat, "seq", "gone"))
    gone = [chat_id for chat_id, (seq, is_gone) in zip(ids, found, strict=True) if seq is None or is_gone]
    if gone:
        await reading(lambda: client.zrem(created, *gone))  # twice is as once
