"""
Hints: in which chats a person may be. They lie with their inbox, and only the chats know whether it is so.

An inbox lies in another slot than the chats in it. So the hint is written before a person is let into a chat, and
taken away after they have left: what may be left over is a hint that the chat denies, and inboxes clear these away.
Chats that a person has left are remembered as their past, for the erasure of what they sent, as long as something may
be left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from components.conf import conf
from components.exceptions import RedisUnavailable, TooManyChats
from components.kit.client import AnyRedis
from components.kit.keyspace import bucket
from components.kit.scripts import Script, idempotent, pipelined
from components.kit.stored import text_of
from components.services.chat.ids import is_id
from components.services.chat.keys import ChatKeys, InboxKeys

YOUNG_AFTER_LEAVING = 60_000  # milliseconds: so long after a hint its person may be about to enter the chat
YOUNG = 86_400_000  # milliseconds
MANY_PAST = 50  # chats that somebody has left: above this, it is found out which of them must be remembered
LOOKED_AT_PAST = 20  # of them at once
CLOCKS_APART = 3_600_000  # milliseconds: by so much the clocks of two nodes of a cluster may differ
_LOOKED_AT = 3  # persons whose inboxes are cleared up for one request

DROP = Script("chat/drop")
FORGET = Script("chat/forget")
HINT = Script("chat/hint")
KEPT = Script("chat/kept")


async def write_hints(
    client: AnyRedis, chat_id: str, persons: Sequence[str], *, is_limited: bool = False
) -> None:
    """Write a hint of the chat into the inboxes of *persons*. Raises TooManyChats if one *is_limited* and full."""
    most = conf().max_chats_joined if is_limited else 0
    calls = [HINT.call(InboxKeys(person), id=chat_id, most=most, is_done=1) for person in persons]
    while not all(await HINT.amany(client, calls)):
        # Others have put them into chats since there was room.
        await check_room(client, chat_id, persons)


async def check_room(client: AnyRedis, chat_id: str, persons: Sequence[str]) -> None:
    """Raise TooManyChats unless each of *persons* may be in one chat more."""
    full = await _full(client, chat_id, persons)
    for person in full[:_LOOKED_AT]:
        await _clear(client, person)
    if full and (full := await _full(client, chat_id, full)):
        shown = ", ".join(map(repr, full[:5]))[:200]
        raise TooManyChats(
            f"Nobody may be in more than {conf().max_chats_joined:,} chats. In as many already: {shown}."
        )


async def _full(client: AnyRedis, chat_id: str, persons: Sequence[str]) -> list[str]:
    if not (most := conf().max_chats_joined):
        return []
    calls = [HINT.call(InboxKeys(person), id=chat_id, most=most, is_done=0) for person in persons]
    has_room = await HINT.amany(client, calls)
    return [person for person, room in zip(persons, has_room, strict=True) if not room]


async def _clear(client: AnyRedis, person: str) -> None:
    """Forget the chats that *person* is not in any more."""
    hints = await idempotent(lambda: client.zrange(InboxKeys(person).hints, 0, -1))
    ids = [chat_id for chat_id in map(text_of, hints) if is_id(chat_id)]
    found = await pipelined(client, ids, lambda pipe, id: pipe.hexists(ChatKeys(id).members, person))
    if gone := [chat_id for chat_id, is_member in zip(ids, found, strict=True) if not is_member]:
        await forget_hints(client, person, gone, young=YOUNG_AFTER_LEAVING)


async def forget_hints(client: AnyRedis, person: str, chat_ids: Sequence[str], *, young: int) -> None:
    """Note that *person* is not in these chats any more. Hints that are *young*, in milliseconds, stay."""
    past = await FORGET.run(client, InboxKeys(person), young=young, ids=chat_ids)
    if past > MANY_PAST:
        # It is done again with the next chat that they leave, so an outage of one node changes nothing.
        with suppress(RedisUnavailable):
            await _prune_past(client, person)


async def _prune_past(client: AnyRedis, person: str) -> None:
    """
    Look at some of the chats that *person* has left, and forget those in which nothing is left of their time.

    They are chosen by chance, and are more than come in. So what remains are those of which erasure must know.
    """
    key = InboxKeys(person).past
    found = await idempotent(lambda: client.zrandmember(key, LOOKED_AT_PAST))
    if not found:
        return
    scores = await idempotent(lambda: client.zmscore(key, found))
    asked: dict[str, list[tuple[str, int]]] = {}
    for chat_id, left_at in zip(map(text_of, found), scores, strict=True):
        if left_at is not None:
            asked.setdefault(bucket(chat_id), []).append((chat_id, int(left_at)))
    calls = []
    for tag, some in asked.items():
        words = [word for chat_id, left_at in some for word in (chat_id, left_at + CLOCKS_APART)]
        calls.append(KEPT.call(ChatKeys.of_bucket(tag), asked=words))
    gone: list[str | int] = []
    for some, answers in zip(asked.values(), await KEPT.amany(client, calls), strict=True):
        for (chat_id, left_at), is_kept in zip(some, answers, strict=True):
            if not is_kept:
                gone += [chat_id, "", left_at, 0]
    if gone:
        await DROP.run(client, InboxKeys(person), chats=gone)
