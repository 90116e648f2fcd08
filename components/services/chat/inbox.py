"""
Inbox: all chats of a person.

The inbox stores, as hints, which chats the person may be in. Only the chats know whether they are. Every query of an
inbox therefore takes two round trips to each node, however many chats there are: one for the hints, then one script
for each bucket of chats. A query changes nothing, except that it removes hints that chats have denied for a day.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.exceptions import RedisUnavailable
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.decoding import text_of
from components.kit.keyspace import bucket
from components.kit.pubsub import Listener, channel
from components.kit.scripts import CLUSTERS, Call, idempotent, pipelined
from components.kit.sync_async import at_once, both, cancellations
from components.kit.validation import check_seconds
from components.services.chat.chat import (
    LOOK,
    MAX_BYTES,
    READ,
    READS_TOLD,
    Chat,
    check_limit,
    check_seq,
    question,
)
from components.services.chat.erasure import erase_person
from components.services.chat.facts import Changes, ChatNews, ChatPage, Chats, Erased, Position, Unread
from components.services.chat.formats import read_news
from components.services.chat.ids import check_person, is_id
from components.services.chat.inbox_index import YOUNG, forget_hints
from components.services.chat.keys import ChatKeys, InboxKeys, index

#: A question about a chat: its id, the seq that the person has ("read" or "last", see look.lua) and the revision (""
#: for any).
Question = tuple[str, int | str, int | str]

#: The state of a chat: True if nothing is new, None if it is unknown.
_Found = ChatNews | bool | None

#: The most chats that are asked at once for their new messages. If there are more, they are first asked only whether
#: they have news.
_AT_ONCE = 16
#: The most chats in one answer; the bytes of bodies in it; and the bytes that each chat gets at least.
_MOST_CHATS = 100
_MOST_BYTES = 1 << 20
_LEAST_BYTES = 4_096

_AGAIN = 5.0  # seconds after which a waiting call asks again for chats whose state is unknown


class Inbox:
    """The chats of *user*. Every method raises RedisUnavailable."""

    def __init__(self, user: str) -> None:
        self.user = check_person(user)

    async def _fetch(self, client: AnyRedis, *, limit: int = 100) -> Chats:
        """Return the chats with something unread, each with its first *limit* unread messages and events."""
        hints = await self._hints(client)
        found = await self._look(client, hints, [(id, "read", "") for id in hints], check_limit(limit))
        return Chats(_newest_first(found), unavailable=_unavailable(found))

    fetch, afetch = both(_fetch)

    async def _chats(self, client: AnyRedis) -> Chats:
        """
        Return all chats without their messages, the one with the latest message or event first.

        The ids of chats whose state is unknown are in the list's *unavailable*.
        """
        hints = await self._hints(client)
        found = await self._look(client, hints, [(id, "last", "") for id in hints], 0)
        return Chats(_newest_first(found), unavailable=_unavailable(found))

    chats, achats = both(_chats)

    async def _unread(self, client: AnyRedis) -> Unread:
        """Return how much the person has not read, for a badge. Chats whose state is unknown do not count."""
        hints = await self._hints(client)
        found = (await self._look(client, hints, [(id, "read", "") for id in hints], 0)).values()
        chats = [chat for chat in found if isinstance(chat, ChatNews) and chat.unread]
        return Unread(sum(each.unread for each in chats), sum(each.mentions for each in chats), len(chats))

    unread, aunread = both(_unread)

    async def _page(self, client: AnyRedis, *, limit: int = 50, after: str = "") -> ChatPage:
        """
        Return *limit* chats without their messages, the one with the latest message first.

        *after* is *next* of the previous page. A chat that gets a message meanwhile moves to the front, and so may be
        missing in later pages. Raises ValueError.
        """
        check_limit(limit)
        place = _place_of(after)
        hints = await self._hints(client)
        left = [each for each in await self._places(client, hints) if place is None or each > place]
        chats, unavailable = list[ChatNews](), list[str]()
        last = None
        while left and len(chats) < limit:
            some, left = left[: limit - len(chats)], left[limit - len(chats) :]
            last = some[-1]
            found = await self._look(client, hints, [(id, "last", "") for _said, id in some], 0)
            chats += [chat for chat in found.values() if isinstance(chat, ChatNews)]
            unavailable += _unavailable(found)
        following = f"{-last[0]}-{last[1]}" if left and last else ""
        return ChatPage(sorted(chats, key=_last_at, reverse=True), following, unavailable)

    page, apage = both(_page)

    def changes(self, since: Mapping[str, Position], *, limit: int = 50) -> Changes:
        """
        Return the news in all chats after these positions; for a chat without a position, the newest *limit*
        messages.

        There are at most 100 chats in the answer; *has_more* says whether more have changed.
        """
        return at_once(self._changes(get_client(), since, limit))

    async def achanges(self, since: Mapping[str, Position], *, limit: int = 50, wait: float = 0.0) -> Changes:
        """Return the changes, as changes() does, as soon as there are any, or after *wait* seconds without."""
        left, cancelled = check_seconds("wait", wait, may_be_zero=True), cancellations()
        client = get_async_client()
        if not left:
            return await self._changes(client, since, limit)
        until, inbox = asyncio.get_running_loop().time() + left, channel("inbox", self.user)
        async with Listener.of_the_loop().interest([inbox]) as interest:
            woken = {inbox}
            unavailable: dict[str, None] = {}
            while True:
                # Messages after the subscription wake this call; those before it are read now.
                if inbox in woken:
                    hints, away = await self._known(client, since)
                    channels = {channel("chat", chat_id): chat_id for chat_id in hints.keys() | since.keys()}
                    await interest.add(channels)
                    asked = list(channels.values())
                else:
                    asked = [channels[name] for name in woken if name in channels]
                changes = await self._changes_of(client, hints, asked, since, limit, away)
                if cancellations() > cancelled:
                    raise asyncio.CancelledError
                left = until - asyncio.get_running_loop().time()
                for chat_id in asked:
                    unavailable.pop(chat_id, None)
                unavailable |= dict.fromkeys(changes.unavailable)
                if changes.chats or changes.gone or left <= 0:
                    return replace(changes, unavailable=list(unavailable))
                # Nothing announces that a node is back, so ask again now and then.
                lame = {channel("chat", chat_id) for chat_id in unavailable} | ({inbox} if away else set())
                woken = lame | await interest.wait(min(left, _AGAIN) if lame else left)

    async def _acknowledge(self, client: AnyRedis, seqs: Mapping[str, int]) -> dict[str, int]:
        """
        Mark everything up to these seqs as read. Return the new reading positions in the chats that the person is in.
        """
        known = {id: check_seq("seq", seq) for id, seq in seqs.items() if is_id(id)}
        calls = [
            READ.call(
                ChatKeys(id), person=self.user, wanted=seq, channel=channel("chat", id), most_told=READS_TOLD
            )
            for id, seq in known.items()
        ]
        positions = {}
        for chat_id, (position, is_due) in zip(known, await READ.amany(client, calls), strict=True):
            if position >= 0:
                positions[chat_id] = int(position)
            if is_due:
                await Chat(chat_id)._trim_some(client)
        return positions

    acknowledge, aacknowledge = both(_acknowledge)

    async def _erase(self, client: AnyRedis) -> Erased:
        """
        Erase everything that the person has sent, in current and past chats, and their memberships.

        Repeat the call if it was interrupted. The events of their joining and leaving stay, and so does what others
        wrote about them.
        """
        return await erase_person(client, self.user)

    erase, aerase = both(_erase)

    async def _places(self, client: AnyRedis, chat_ids: Iterable[str]) -> list[tuple[int, str]]:
        """
        Return pairs for sorting: the negative millisecond of a chat's last message, and its id. Chats whose cluster
        node does not answer come last.
        """
        asked: dict[str, list[str]] = {}
        for chat_id in chat_ids:
            asked.setdefault(bucket(chat_id), []).append(chat_id)

        async def scores(tags: Sequence[str]) -> list[Any]:
            return await pipelined(client, tags, lambda pipe, tag: pipe.zmscore(index(tag), asked[tag]))

        try:
            found = await scores(list(asked))
        except RedisUnavailable:
            if not isinstance(client, CLUSTERS):
                raise
            found = []
            for tag, some in asked.items():
                try:
                    found += await scores([tag])
                except RedisUnavailable:
                    found.append([None] * len(some))
        pairs = zip(
            (id for some in asked.values() for id in some), (at for some in found for at in some), strict=True
        )
        return sorted((-int(at or 0), chat_id) for chat_id, at in pairs)

    async def _changed(
        self, client: AnyRedis, hints: Mapping[str, int], questions: list[Question], limit: int
    ) -> tuple[dict[str, _Found], bool]:
        """
        Return the answers to *questions*, with at most _MOST_CHATS changed chats, and whether more have changed. If
        there are many chats, they are first asked only whether they have changed, so the answer does not grow with
        their number.
        """
        if len(questions) <= _AT_ONCE:
            return await self._look(client, hints, questions, limit), False
        new = {each[0] for each in questions if each[1] == "last"}
        known = [each for each in questions if each[0] not in new]
        left = [id for _said, id in await self._places(client, new)] if len(new) > _MOST_CHATS else list(new)
        found: dict[str, _Found] = {}
        changed: list[str] = []
        while not found or (left and not changed):
            some, left = left[:_MOST_CHATS], left[_MOST_CHATS:]
            more = await self._look(client, hints, [*known, *((id, "last", "") for id in some)], 0)
            changed += [chat.chat_id for chat in _newest_first(more)]
            found, known = found | more, []
            if not left:
                break
        told = changed[:_MOST_CHATS]
        found |= dict.fromkeys(changed[_MOST_CHATS:], True)
        if told and limit:
            most_bytes = max(_LEAST_BYTES, min(MAX_BYTES, _MOST_BYTES // len(told)))
            wanted = [each for each in questions if each[0] in told]
            for chat_id in told:
                del found[chat_id]
            found |= await self._look(client, hints, wanted, limit, most_bytes)
        return found, bool(left) or len(changed) > _MOST_CHATS

    async def _changes(self, client: AnyRedis, since: Mapping[str, Position], limit: int) -> Changes:
        hints, away = await self._known(client, since)
        asked = [*hints, *(since.keys() - hints.keys())]
        return await self._changes_of(client, hints, asked, since, limit, away)

    async def _changes_of(
        self,
        client: AnyRedis,
        hints: Mapping[str, int],
        asked: Sequence[str],
        since: Mapping[str, Position],
        limit: int,
        away: RedisUnavailable | None,
    ) -> Changes:
        """
        Return the changes in the chats *asked*; other positions stay. *away* is the error that hid the hints, if any.
        """
        questions: list[Question] = []
        for chat_id in filter(is_id, asked):
            position = since.get(chat_id)
            seq = check_seq("seq", position.seq) if position else "last"
            questions.append((chat_id, seq, position.revision if position else ""))
        found, has_more = await self._changed(client, hints, questions, check_limit(limit))
        positions = dict(since)
        for chat_id in asked:
            if chat_id not in found:
                positions.pop(chat_id, None)
        chats = _newest_first(found)
        positions |= {chat.chat_id: chat.position for chat in chats}
        gone, unavailable = [id for id in since if id not in positions], _unavailable(found)
        if away and len(unavailable) == len(questions):
            raise away
        return Changes(chats, gone, positions, has_more, unavailable, is_complete=away is None)

    async def _known(
        self, client: AnyRedis, since: Mapping[str, Position]
    ) -> tuple[dict[str, int], RedisUnavailable | None]:
        """
        Return the hints; or none, and the error, if their cluster node is unavailable and *since* has chats to ask
        for.
        """
        try:
            return await self._hints(client), None
        except RedisUnavailable as error:
            if not since or not isinstance(client, CLUSTERS):
                raise
            return {}, error

    async def _hints(self, client: AnyRedis) -> dict[str, int]:
        """Return the chats that the person may be in, each with the millisecond of its hint."""
        key = InboxKeys(self.user).hints
        found = await idempotent(lambda: client.zrange(key, 0, -1, withscores=True))
        named = ((text_of(name), int(hinted_at)) for name, hinted_at in found)
        return {chat_id: hinted_at for chat_id, hinted_at in named if is_id(chat_id)}

    async def _look(
        self,
        client: AnyRedis,
        hints: Mapping[str, int],
        questions: Sequence[Question],
        limit: int,
        most_bytes: int = MAX_BYTES,
    ) -> dict[str, _Found]:
        """
        Return the chats that the person is in: True for one without news, None for one whose state is unknown. Hints
        that chats have denied for long are removed. Raises RedisUnavailable if all of Redis is unavailable, not only
        one cluster node.
        """
        asked: dict[str, list[Question]] = {}
        for each in questions:
            asked.setdefault(bucket(each[0]), []).append(each)
        calls = [
            question(tag, self.user, limit, [word for each in some for word in each], most_bytes)
            for tag, some in asked.items()
        ]
        found: dict[str, _Found] = {}
        denied = []
        for some, answered in zip(asked.values(), await _answers(client, calls), strict=True):
            if isinstance(answered, RedisUnavailable):
                found |= dict.fromkeys(chat_id for chat_id, *_ in some)
                continue
            now, *parts = answered
            for (chat_id, _seq, _revision), part in zip(some, parts, strict=True):
                if part != 0:
                    found[chat_id] = _read(chat_id, part)
                elif now - hints.get(chat_id, now) > YOUNG:
                    denied.append(chat_id)
        if denied:
            await forget_hints(client, self.user, denied, young=YOUNG)
        return found


def _place_of(after: str) -> tuple[int, str] | None:
    """Return the place that *next* of a page names; None for the beginning. Raises ValueError."""
    if not after:
        return None
    said_at, _, chat_id = after.partition("-")
    if not (said_at.isascii() and said_at.isdigit() and len(said_at) <= 16 and is_id(chat_id)):
        raise ValueError(f"after is {after[:80]!r}; it must be the value of next of the previous page.")
    return -int(said_at), chat_id


async def _answers(client: AnyRedis, calls: Sequence[Call]) -> list[Any]:
    """Return the answers of look.lua, with RedisUnavailable in place of those of unavailable cluster nodes."""
    answers = await LOOK.aoutcomes(client, calls)
    for each in answers:
        if isinstance(each, Exception) and not (
            isinstance(each, RedisUnavailable) and isinstance(client, CLUSTERS)
        ):
            raise each
    return answers


def _read(chat_id: str, part: Any) -> _Found:
    """Return the state of a chat that the person is in, from the answer of look.lua."""
    if part == 1:
        return True
    try:
        return None if part == 2 else read_news(chat_id, part)
    except (ValueError, OverflowError):
        return None


def _unavailable(found: Mapping[str, _Found]) -> list[str]:
    return [chat_id for chat_id, each in found.items() if each is None]


def _newest_first(found: Mapping[str, _Found]) -> list[ChatNews]:
    return sorted((chat for chat in found.values() if isinstance(chat, ChatNews)), key=_last_at, reverse=True)


def _last_at(chat: ChatNews) -> float:
    return chat.last_message.sent_at.timestamp() if chat.last_message else 0.0
