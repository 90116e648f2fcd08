"""
Hints: entries of an inbox that say which chats a person may be in. Only the chats know whether they are.

An inbox is in another slot than the chats in it. Therefore the hint is written before a person is added to a chat,
and removed after they have left. An interruption can only leave a hint that the chat denies, and inboxes remove
these. An inbox also remembers the chats that its person has left after writing there, as their past, while messages
of theirs may be left, so that an erasure finds these.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from components.conf import conf
from components.exceptions import RedisUnavailable, TooManyChats
from components.kit.client import AnyRedis
from components.kit.decoding import text_of
from components.kit.keyspace import bucket
from components.kit.scripts import Script, idempotent, pipelined
from components.services.chat.ids import is_id
from components.services.chat.keys import ChatKeys, InboxKeys

YOUNG_AFTER_LEAVING = (
    60_000  # milliseconds after a hint within which its person may be about to enter the chat
)
YOUNG = 86_400_000  # milliseconds
MANY_PAST = 50  # past chats of a person; above this number, those without messages of theirs are forgotten
LOOKED_AT_PAST = 20  # past chats to examine at once
CLOCKS_APART = 3_600_000  # milliseconds by which the clocks of two cluster nodes may differ
_LOOKED_AT = 3  # people whose inboxes one request cleans up

DROP = Script("chat/drop")
FORGET = Script("chat/forget")
HINT = Script("chat/hint")
KEPT = Script("chat/kept")


async def write_hints(
    client: AnyRedis, chat_id: str, persons: Sequence[str], *, is_limited: bool = False
) -> None:
    """
    Write a hint of the chat into the inboxes of *persons*.

    Raises TooManyChats if *is_limited* and an inbox is full.
    """
    most = conf().max_chats_joined if is_limited else 0
    calls = [HINT.call(InboxKeys(person), id=chat_id, most=most, is_done=1) for person in persons]
    while not all(await HINT.amany(client, calls)):
        # Others have added these people to chats since check_room() found room.
        await check_room(client, chat_id, persons)


async def check_room(client: AnyRedis, chat_id: str, persons: Sequence[str]) -> None:
    """Raise TooManyChats unless each of *persons* may be in one chat more."""
    full = await _full(client, chat_id, persons)
    for person in full[:_LOOKED_AT]:
        await _clear(client, person)
    if full and (full := await _full(client, chat_id, full)):
        shown = ", ".join(map(repr, full[:5]))[:200]
        raise TooManyChats(
            f"A person may be in at most {conf().max_chats_joined:,} chats. This limit is reached by: {shown}."
        )


async def _full(client: AnyRedis, chat_id: str, persons: Sequence[str]) -> list[str]:
    if not (most := conf().max_chats_joined):
        return []
    calls = [HINT.call(InboxKeys(person), id=chat_id, most=most, is_done=0) for person in persons]
    has_room = await HINT.amany(client, calls)
    return [person for person, room in zip(persons, has_room, strict=True) if not room]


async def _clear(client: AnyRedis, person: str) -> None:
    """Remove the hints of chats that *person* is not in any more."""
    hints = await idempotent(lambda: client.zrange(InboxKeys(person).hints, 0, -1))
    ids = [chat_id for chat_id in map(text_of, hints) if is_id(chat_id)]
    found = await pipelined(client, ids, lambda pipe, id: pipe.hexists(ChatKeys(id).members, person))
    if gone := [chat_id for chat_id, is_member in zip(ids, found, strict=True) if not is_member]:
        await forget_hints(client, person, gone, young=YOUNG_AFTER_LEAVING)


async def forget_hints(client: AnyRedis, person: str, chat_ids: Sequence[str], *, young: int) -> None:
    """Move these chats of *person* from hints to past. Hints younger than *young* milliseconds stay."""
    past = await FORGET.run(client, InboxKeys(person), young=young, ids=chat_ids)
    if past > MANY_PAST:
        # The next chat that the person leaves repeats this, so an outage of one node does no harm.
        with suppress(RedisUnavailable):
            await _prune_past(client, person)


async def hints_of(client: AnyRedis, chat_id: str, persons: Sequence[str]) -> dict[str, int]:
    """Return the scores of the hints that *persons* have of a chat."""
    scores = await pipelined(
        client, persons, lambda pipe, person: pipe.zscore(InboxKeys(person).hints, chat_id)
    )
    return {person: int(score) for person, score in zip(persons, scores, strict=True) if score is not None}


async def drop_hints(client: AnyRedis, chat_id: str, hints: Mapping[str, int]) -> None:
    """Remove these hints of people who have left the chat since they were read, unless they were written again."""
    calls = [
        DROP.call(InboxKeys(person), chats=[chat_id, score, "", -CLOCKS_APART])
        for person, score in hints.items()
    ]
    await DROP.amany(client, calls)


async def _prune_past(client: AnyRedis, person: str) -> None:
    """
    Examine some past chats of *person*, and forget those in which they have certainly left nothing. They are chosen
    at random, and faster than new ones come in, so that in the end only those that an erasure needs remain, and large
    ones.
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
        calls.append(KEPT.call(ChatKeys.of_bucket(tag), person=person, asked=words))
    gone: list[str | int] = []
    for some, answers in zip(asked.values(), await KEPT.amany(client, calls), strict=True):
        for (chat_id, left_at), is_kept in zip(some, answers, strict=True):
            if not is_kept:
                gone += [chat_id, "", left_at, 0]
    if gone:
        await DROP.run(client, InboxKeys(person), chats=gone)
