"""
The erasure of a person: he leaves each chat that he may be in, and what he said there is deleted; those who are in
these chats forget him as a contact, as do his own contacts, and he forgets them; then goes what his inbox knows.
Interrupted, it is done again from the beginning: the inbox goes last.
"""

from __future__ import annotations

from contextlib import suppress

from components.client import AnyRedis, redis_errors
from components.exceptions import ChatNotFound
from components.services.autocomplete import RecentContacts
from components.services.chat import core
from components.services.chat.chats import Chat
from components.services.chat.ids import new_call
from components.services.chat.records import Erased, EventKind
from components.services.news import channel
from components.twins import answer

_LOOKED_AT = 500  # entries in one run of the script


async def erase_person(client: AnyRedis, person: str) -> Erased:
    inbox = core.keys_of_inbox(person)
    chats: dict[bytes, None] = {}
    with redis_errors():
        for key in inbox:
            chats |= dict.fromkeys(await answer(client.zrange(key, 0, -1)))
    messages = touched = 0
    others: dict[str, None] = {}
    for chat_id in map(bytes.decode, chats):
        with suppress(ChatNotFound):
            others |= dict.fromkeys(each.user for each in await Chat(chat_id)._members(client, None))
        with suppress(ChatNotFound):
            await Chat(chat_id)._remove(client, person, person, EventKind.LEFT)
        gone = await _erase(client, chat_id, person)
        messages, touched = messages + gone, touched + bool(gone)
    await RecentContacts(person)._erase(client, others)
    with redis_errors():
        await answer(client.delete(*inbox, core.keys_of_limits(person)[0]))
    return Erased(touched, messages)


async def _erase(client: AnyRedis, chat_id: str, person: str) -> int:
    erased, on = 0, 1
    while on:
        args = [person, on, _LOOKED_AT, new_call(), channel("chat", chat_id)]
        gone, on = await core.erase.acall(client, keys=core.keys_of(chat_id).erase, args=args)
        erased += int(gone)
    return erased
