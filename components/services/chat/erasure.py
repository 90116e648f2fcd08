"""
The erasure of a person. They leave each chat that they may be in, and what they sent there is deleted. The members of
these chats forget them as a contact, as do their own contacts, and they forget these. Then their inbox forgets the
chats.

Others may add them to a chat meanwhile. So an entry of the inbox is removed only if it has not changed since it was
read, and the inbox is read again until nothing new is in it, ten times at most. Whoever has written a hint before,
and is about to let them in, is refused by the chat, and writes the hint again. A young hint of a chat that is not
there stays: somebody may be about to create it, and a repeated erasure finds it. An erasure that was interrupted is
repeated from the beginning.
"""

from __future__ import annotations

from contextlib import suppress

from components.exceptions import ChatNotFound, RedisUnavailable
from components.kit.client import AnyRedis
from components.kit.ids import new_call
from components.kit.scripts import CLUSTERS, Script, idempotent
from components.kit.stored import text_of
from components.kit.values import is_name
from components.services.autocomplete import RecentContacts
from components.services.chat.chat import Chat
from components.services.chat.facts import Erased, EventKind
from components.services.chat.formats import write_event
from components.services.chat.hints import DROP, YOUNG_AFTER_LEAVING
from components.services.chat.ids import is_id
from components.services.chat.keys import InboxKeys

ERASE = Script("chat/erase")

_LOOKED_AT = 500  # entries in one run of the script
_PASSES = 10  # through the inbox: somebody may add them again and again, and what is left then the next erasure finds

#: The scores of a chat among the hints and in the past; None where it is not.
_Scores = list[float | None]


async def erase_person(client: AnyRedis, person: str) -> Erased:
    """
    Erase *person*, and return how much that was.

    Raises RedisUnavailable if a chat could not be reached. The others are done then, and that one stays in the inbox.
    """
    messages, touched, others = 0, set(), dict[str, None]()
    failed: RedisUnavailable | None = None
    seen: dict[bytes, _Scores] = {}
    for _ in range(_PASSES):
        noted = await _noted(client, person)
        if not (new := {name: its for name, its in noted.items() if seen.get(name) != its}):
            break
        for name, scores in new.items():
            seen[name] = scores
            try:
                gone = await _erase_from(client, text_of(name), person, others)
            except RedisUnavailable as error:
                if not isinstance(client, CLUSTERS):
                    raise
                failed = error  # another node may answer
                continue
            messages += gone[0]
            if gone[0]:
                touched.add(name)
            read = ["" if score is None else int(score) for score in scores]
            hinted_at, left_at = scores
            has_left = left_at is not None and hinted_at is not None and left_at >= hinted_at
            young = 0 if gone[1] or has_left else YOUNG_AFTER_LEAVING
            await DROP.run(client, InboxKeys(person), chats=[name, *read, young])
    await RecentContacts(person)._erase(client, others)
    if failed:
        raise failed
    await idempotent(lambda: client.delete(InboxKeys(person).created))  # twice is as once
    return Erased(len(touched), messages)


async def _noted(client: AnyRedis, person: str) -> dict[bytes, _Scores]:
    """Return the chats that they are in, or were in."""
    found: dict[bytes, _Scores] = {}
    keys = InboxKeys(person)
    for at, key in enumerate((keys.hints, keys.past)):
        for name, score in await idempotent(lambda key=key: client.zrange(key, 0, -1, withscores=True)):  # type: ignore[misc]
            found.setdefault(name, [None, None])[at] = score
    return found


async def _erase_from(
    client: AnyRedis, chat_id: str, person: str, others: dict[str, None]
) -> tuple[int, bool]:
    """
    Return how many messages are gone, and whether the hint in their inbox may go: whoever is about to let them in
    writes it once more.
    """
    if not is_id(chat_id):
        return 0, True
    chat = Chat(chat_id)
    with suppress(ChatNotFound):
        members = await chat._members(client)
        others |= dict.fromkeys(each.user for each in members if is_name(each.user))
    event = write_event(EventKind.LEFT, person, person)
    said = await chat._let_out(client, person, "", event, "erased")
    messages = await _erase(client, chat, person)
    if said == b"removed":
        await chat._trim_some(client)
    return messages, said != b"unknown"


async def _erase(client: AnyRedis, chat: Chat, person: str) -> int:
    erased, on = 0, 1
    while on:
        gone, on = await ERASE.run(
            client,
            chat._keys,
            person=person,
            first=on,
            most=_LOOKED_AT,
            call=new_call(),
            channel=chat._channel,
        )
        erased += int(gone)
    return erased
