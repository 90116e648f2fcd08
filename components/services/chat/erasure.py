"""
The erasure of a person. It removes the person from each chat that they may be in, and deletes the messages that they
sent there. It removes them from the recent contacts of the members of these chats and of their own contacts, and
deletes their own recent contacts. At the end, it removes the chats from their inbox.

Others may add the person to a chat meanwhile. An entry of the inbox is therefore removed only if it has not changed
since it was read, and the inbox is read again until it has no new entries, at most ten times. If a process has
written a hint but not yet added the person, the chat refuses the addition, and the process writes the hint again. A
young hint of a chat that does not exist stays, because the chat may be about to be created; a repeated erasure finds
it. An interrupted erasure has to be repeated from the beginning.
"""

from contextlib import suppress

from components.exceptions import ChatNotFound, RedisUnavailable
from components.kit.client import AnyRedis
from components.kit.decoding import text_of
from components.kit.ids import new_call
from components.kit.scripts import CLUSTERS, Script, idempotent
from components.kit.validation import is_name
from components.services.autocomplete import RecentContacts
from components.services.chat.chat import Chat
from components.services.chat.facts import Erased, EventKind
from components.services.chat.formats import write_event
from components.services.chat.ids import is_id
from components.services.chat.inbox_index import DROP, YOUNG_AFTER_LEAVING
from components.services.chat.keys import InboxKeys

ERASE = Script("chat/erase")

_LOOKED_AT = 500  # entries that one run of the script examines
_PASSES = 10  # passes through the inbox, which others may keep filling; the next erasure finds the rest

#: The scores of a chat in *hints* and in *past*; None where it has no entry.
_Scores = list[float | None]


async def erase_person(client: AnyRedis, person: str) -> Erased:
    """
    Erase *person*. Return how much was erased.

    Raises RedisUnavailable if a chat could not be reached. That chat stays in the inbox; all others are done.
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
    await idempotent(lambda: client.delete(InboxKeys(person).created))  # safe to repeat
    return Erased(len(touched), messages)


async def _noted(client: AnyRedis, person: str) -> dict[bytes, _Scores]:
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
    Erase the person from a chat. Return how many messages were deleted, and whether the hint in the inbox may be
    removed, because a process that is about to add the person will write it again.
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
    if said in (b"removed", b"traceless"):
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
