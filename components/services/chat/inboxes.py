"""
Inbox: all chats of a person.

In which chats he may be, his inbox knows as hints; whether he is, only the chats do. So all that is asked of an inbox
takes two round trips to each node, however many chats there are: the hints, then one script for each bucket of chats.
Nothing is changed by it, but hints that have been denied for a day are cleared away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from components import keys
from components.buckets import bucket
from components.client import AnyRedis, get_async_client, get_client, redis_errors
from components.scripts import ASYNCHRONOUS
from components.services.chat import core
from components.services.chat.erasure import erase_person
from components.services.chat.ids import is_id
from components.services.chat.news import read_news
from components.services.chat.readers import ask
from components.services.chat.records import Changes, ChatNews, ChatPage, Erased, Position
from components.services.chat.talking import check_limit, check_seq
from components.services.news import Listener, Turns, channel
from components.together import together
from components.twins import answer, at_once, cancellations
from components.validation import check_seconds

#: Of a chat: its id, the seq that the person has ("read" or "last", see look.lua) and the revision ("" for any).
Question = tuple[str, int | str, int | str]

#: Chats that are asked at once for what is new with its messages. More are asked first whether there is something.
_AT_ONCE = 16
#: Chats that one answer tells of, the bodies in it, and of each chat at least, in bytes.
_MOST_CHATS = 100
_MOST_BYTES = 1 << 20
_LEAST_BYTES = 4_096

#: Calls of look.lua that go together with those of others; more of them would let these wait.
_FEW = 4


class Inbox:
    """The chats of *user*. Every method raises RedisUnavailable."""

    def __init__(self, user: str) -> None:
        self.user = core.check_person(user)

    def fetch(self, *, limit: int = 100) -> list[ChatNews]:
        """The chats in which something is after the reading position, with the first *limit* of it."""
        return at_once(self._fetch(get_client(), limit))

    async def afetch(self, *, limit: int = 100) -> list[ChatNews]:
        """fetch(), awaited."""
        return await self._fetch(get_async_client(), limit)

    def chats(self) -> list[ChatNews]:
        """All of them without their messages, the one in which something happened last before the others."""
        return at_once(self._chats(get_client()))

    async def achats(self) -> list[ChatNews]:
        """chats(), awaited."""
        return await self._chats(get_async_client())

    def page(self, *, limit: int = 50, after: str = "") -> ChatPage:
        """
        Return *limit* chats without their messages, those in which something was said last before the others.

        *after* is *next* of the page before. A chat in which something is said meanwhile is among the first, and
        may so be missing in later pages. Raises ValueError.
        """
        return at_once(self._page(get_client(), limit, after))

    async def apage(self, *, limit: int = 50, after: str = "") -> ChatPage:
        """page(), awaited."""
        return await self._page(get_async_client(), limit, after)

    def changes(self, since: Mapping[str, Position], *, limit: int = 50) -> Changes:
        """
        Return what is new in all chats after these positions; of a chat that has none, the newest *limit* messages.

        These are at most 100 chats, and *has_more* says whether there are others.
        """
        return at_once(self._changes(get_client(), since, limit))

    async def achanges(self, since: Mapping[str, Position], *, limit: int = 50, wait: float = 0.0) -> Changes:
        """changes(), awaited: as soon as there are any, or after *wait* seconds without."""
        left, cancelled = check_seconds("wait", wait, may_be_zero=True), cancellations()
        client = get_async_client()
        if not left:
            return await self._changes(client, since, limit)
        until, inbox = asyncio.get_running_loop().time() + left, channel("inbox", self.user)
        async with Listener.of_the_loop().interest([inbox]) as interest:
            woken = {inbox}
            while True:
                # What comes after the channels of the chats were subscribed to wakes, what came before is read.
                if inbox in woken:
                    hints = await self._hints(client)
                    channels = {channel("chat", chat_id): chat_id for chat_id in hints.keys() | since.keys()}
                    await interest.add(channels)
                    asked = list(channels.values())
                else:
                    asked = [channels[name] for name in woken if name in channels]
                changes = await self._changes_of(client, hints, asked, since, limit)
                if cancellations() > cancelled:
                    raise asyncio.CancelledError
                left = until - asyncio.get_running_loop().time()
                if changes.chats or changes.gone or left <= 0:
                    return changes
                woken = await interest.wait(left)

    def acknowledge(self, seqs: Mapping[str, int]) -> dict[str, int]:
        """All up to these seqs is read; the positions after it, of those chats that he is in."""
        return at_once(self._acknowledge(get_client(), seqs))

    async def aacknowledge(self, seqs: Mapping[str, int]) -> dict[str, int]:
        """acknowledge(), awaited."""
        return await self._acknowledge(get_async_client(), seqs)

    def erase(self) -> Erased:
        """
        Let all that he has said be gone, in the chats that he is in and was in, and his memberships with it.

        Repeat it if it was interrupted. That he came and went stays, and what others said of him.
        """
        return at_once(self._erase(get_client()))

    async def aerase(self) -> Erased:
        """erase(), awaited."""
        return await self._erase(get_async_client())

    async def _fetch(self, client: AnyRedis, limit: int) -> list[ChatNews]:
        hints = await self._hints(client)
        found = await self._look(client, hints, [(id, "read", "") for id in hints], check_limit(limit))
        return _newest_first(found)

    async def _chats(self, client: AnyRedis) -> list[ChatNews]:
        hints = await self._hints(client)
        return _newest_first(await self._look(client, hints, [(id, "last", "") for id in hints], 0))

    async def _page(self, client: AnyRedis, limit: int, after: str) -> ChatPage:
        check_limit(limit)
        place = _place_of(after)
        hints = await self._hints(client)
        left = [each for each in await self._places(client, hints) if place is None or each > place]
        chats: list[ChatNews] = []
        last = None
        while left and len(chats) < limit:
            some, left = left[: limit - len(chats)], left[limit - len(chats) :]
            last = some[-1]
            found = await self._look(client, hints, [(id, "last", "") for _said, id in some], 0)
            chats += [chat for chat in found.values() if isinstance(chat, ChatNews)]
        following = f"{-last[0]}-{last[1]}" if left and last else ""
        return ChatPage(sorted(chats, key=_last_at, reverse=True), following)

    async def _places(self, client: AnyRedis, chat_ids: Iterable[str]) -> list[tuple[int, str]]:
        """Return the ids of these chats, each after when something was said last in it, in milliseconds below 0."""
        asked: dict[str, list[str]] = {}
        for chat_id in chat_ids:
            asked.setdefault(bucket(chat_id), []).append(chat_id)
        async with _turn(client):
            found = await ask(
                client, list(asked), lambda pipe, tag: pipe.zmscore(keys.chat_names(tag), asked[tag])
            )
        pairs = zip(
            (id for some in asked.values() for id in some), (at for some in found for at in some), strict=True
        )
        return sorted((-int(at or 0), chat_id) for chat_id, at in pairs)

    async def _changed(
        self, client: AnyRedis, hints: Mapping[str, int], questions: list[Question], limit: int
    ) -> tuple[dict[str, ChatNews | bool], bool]:
        """
        Return the answers to *questions* with at most _MOST_CHATS changed chats, and whether there are more.

        Many chats are asked first whether they have changed: so an answer does not grow with their number.
        """
        if len(questions) <= _AT_ONCE:
            return await self._look(client, hints, questions, limit), False
        new = {question[0] for question in questions if question[1] == "last"}
        known = [question for question in questions if question[0] not in new]
        left = [id for _said, id in await self._places(client, new)] if len(new) > _MOST_CHATS else list(new)
        found: dict[str, ChatNews | bool] = {}
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
            most_bytes = max(_LEAST_BYTES, min(core.MAX_BYTES, _MOST_BYTES // len(told)))
            wanted = [question for question in questions if question[0] in told]
            found |= await self._look(client, hints, wanted, limit, most_bytes)
        return found, bool(left) or len(changed) > _MOST_CHATS

    async def _changes(self, client: AnyRedis, since: Mapping[str, Position], limit: int) -> Changes:
        hints = await self._hints(client)
        return await self._changes_of(client, hints, [*hints, *(since.keys() - hints.keys())], since, limit)

    async def _changes_of(
        self,
        client: AnyRedis,
        hints: Mapping[str, int],
        asked: Sequence[str],
        since: Mapping[str, Position],
        limit: int,
    ) -> Changes:
        """The changes in the chats *asked* for; all others are as they were."""
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
        return Changes(chats, [id for id in since if id not in positions], positions, has_more)

    async def _hints(self, client: AnyRedis) -> dict[str, int]:
        """The chats that he may be in, by the millisecond of the hint."""
        key, _past = core.keys_of_inbox(self.user)
        async with _turn(client):
            with redis_errors():
                found = await answer(client.zrange(key, 0, -1, withscores=True))
        return {chat_id.decode(): int(hinted_at) for chat_id, hinted_at in found}

    async def _look(
        self,
        client: AnyRedis,
        hints: Mapping[str, int],
        questions: Sequence[Question],
        limit: int,
        most_bytes: int = core.MAX_BYTES,
    ) -> dict[str, ChatNews | bool]:
        """The chats that he is in, True for one with nothing new. Hints that were denied for long go."""
        asked: dict[str, list[Question]] = {}
        for question in questions:
            asked.setdefault(bucket(question[0]), []).append(question)
        opening = [self.user, limit, most_bytes, core.READS_TOLD]
        calls = [
            (core.keys_of_look(tag), [*opening, *(word for question in some for word in question)])
            for tag, some in asked.items()
        ]
        found: dict[str, ChatNews | bool] = {}
        denied = []
        if len(calls) <= _FEW and isinstance(client, ASYNCHRONOUS):
            answers = await together(core.look, calls)
        else:
            async with _turn(client):
                answers = await core.look.amany(client, calls)
        for some, (now, *parts) in zip(asked.values(), answers, strict=True):
            for (chat_id, _seq, _revision), part in zip(some, parts, strict=True):
                if part != 0:
                    found[chat_id] = True if part == 1 else read_news(chat_id, part)
                elif now - hints.get(chat_id, now) > core.YOUNG:
                    denied.append(chat_id)
        if denied:
            await core.forget_hints(client, self.user, denied, young=core.YOUNG)
        return found

    async def _erase(self, client: AnyRedis) -> Erased:
        return await erase_person(client, self.user)

    async def _acknowledge(self, client: AnyRedis, seqs: Mapping[str, int]) -> dict[str, int]:
        calls: list[tuple[Sequence[str], Sequence[Any]]] = []
        known = {id: check_seq("seq", seq) for id, seq in seqs.items() if is_id(id)}
        for chat_id, seq in known.items():
            args = [self.user, seq, channel("chat", chat_id), core.READS_TOLD]
            calls.append((core.keys_of(chat_id).read, args))
        positions = {}
        for chat_id, (position, is_due) in zip(known, await core.read.amany(client, calls), strict=True):
            if position >= 0:
                positions[chat_id] = int(position)
            if is_due:
                await core.trim_all(client, chat_id, runs=1)
        return positions


def _place_of(after: str) -> tuple[int, str] | None:
    """Return the place that *next* of a page names; None for the beginning. Raises ValueError."""
    if not after:
        return None
    said_at, _, chat_id = after.partition("-")
    if not (said_at.isascii() and said_at.isdigit() and len(said_at) <= 16 and is_id(chat_id)):
        raise ValueError(f"after is {after[:80]!r}; it must be what the page before gave as its next.")
    return -int(said_at), chat_id


def _turn(client: AnyRedis) -> AbstractAsyncContextManager[None]:
    """What takes a connection for itself; a synchronous client has one for its thread."""
    return Turns.of_the_loop() if isinstance(client, ASYNCHRONOUS) else nullcontext()


def _newest_first(found: Mapping[str, ChatNews | bool]) -> list[ChatNews]:
    return sorted((chat for chat in found.values() if isinstance(chat, ChatNews)), key=_last_at, reverse=True)


def _last_at(chat: ChatNews) -> float:
    return chat.last_message.sent_at.timestamp() if chat.last_message else 0.0
