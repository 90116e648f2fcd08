"""
Talk: what members do with a chat day by day. They send, read what was said, and say how far they have read.

All that sending needs is one script, and so one round trip: whether the person is in the chat, muted, too fast or has
sent this before, then the message itself and what is unread by it. A message that was sent again under the same
client id is recognised as long as it is in the history. What is too old goes after the answer, now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.exceptions import MessageNotFound
from components.kit import news
from components.kit.at_once import at_once
from components.kit.buckets import bucket
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.together import together
from components.services.chat import core
from components.services.chat.formats import check_client_id, instant, read_message, write_body
from components.services.chat.ids import is_id, new_client_id
from components.services.chat.news import read_news
from components.services.chat.records import ChatMessage, ChatNews, Page, Sent
from components.services.counters import tally

_MOST = 200  # messages in one page
_LAST = 2**53  # above all seqs


class Talk:
    """The chat *id*. Every method raises RedisUnavailable, and ChatNotFound for who is not in it."""

    def __init__(self, id: str) -> None:
        self.id = id

    def send(
        self,
        sender: str,
        text: str = "",
        *,
        data: Any = None,
        mentions: Sequence[str] = (),
        client_id: str | None = None,
    ) -> Sent:
        """
        Say something. Sent again under the same *client_id* it is there once.

        Raises ChatClosed, Muted, TooFast, InvalidMessage.
        """
        client, keys = get_client(), self._keys
        args = self._message(sender, text, data, mentions, client_id)
        answer = core.send.quick(client, keys.send, args) or core.send(client, keys=keys.send, args=args)
        return at_once(self._sent(client, answer))

    async def asend(
        self,
        sender: str,
        text: str = "",
        *,
        data: Any = None,
        mentions: Sequence[str] = (),
        client_id: str | None = None,
    ) -> Sent:
        """send(), awaited. Those that come while others of the event loop are under way go in one round trip."""
        keys, args = self._keys.send, self._message(sender, text, data, mentions, client_id)
        [answer] = await together(core.send, [(keys, args)])
        return await self._sent(get_async_client(), answer)

    def history(
        self, user: str, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Page:
        """Messages and events *before* or *after* a seq, both exclusive; the newest if neither is given."""
        return at_once(self._history(get_client(), user, before, after, limit))

    async def ahistory(
        self, user: str, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Page:
        """history(), awaited."""
        return await self._history(get_async_client(), user, before, after, limit)

    def message(self, user: str, seq: int) -> ChatMessage:
        """The message or event of this seq. Raises MessageNotFound."""
        return at_once(self._message_at(get_client(), user, seq))

    async def amessage(self, user: str, seq: int) -> ChatMessage:
        """message(), awaited."""
        return await self._message_at(get_async_client(), user, seq)

    def acknowledge(self, user: str, seq: int) -> int:
        """All up to *seq* is read; the reading position after it, which only ever goes forward."""
        return at_once(self._acknowledge(get_client(), user, seq))

    async def aacknowledge(self, user: str, seq: int) -> int:
        """acknowledge(), awaited."""
        return await self._acknowledge(get_async_client(), user, seq)

    def news(self, user: str) -> ChatNews:
        """How it stands for a member, without messages."""
        return at_once(self._news(get_client(), user))

    async def anews(self, user: str) -> ChatNews:
        """news(), awaited."""
        return await self._news(get_async_client(), user)

    @property
    def _keys(self) -> core.Keys:
        """Raises ChatNotFound for what no chat can be called."""
        if not is_id(self.id):
            raise core.unknown(self.id)
        return core.keys_of(self.id)

    @property
    def _channel(self) -> str:
        return news.channel("chat", self.id)

    def _message(
        self, sender: str, text: str, data: Any, mentions: Sequence[str], client_id: str | None
    ) -> list[Any]:
        core.check_person(sender)
        body, size = write_body(text, data)
        own_id = new_client_id() if client_id is None else check_client_id(client_id)
        named = dict.fromkeys(map(core.check_person, mentions)) if mentions else ()
        return [self.id, sender, own_id, body, len(text), size, self._channel, *named]

    async def _sent(self, client: AnyRedis, answer: Any) -> Sent:
        said, *facts = answer
        if said not in (b"sent", b"duplicate"):
            raise core.refusal(self.id, *answer)
        seq, sent_at, is_due, spoken_to = facts
        if said == b"sent":
            tally("chat:sent")
        if is_due:
            await core.trim_all(client, self.id, runs=1)
        return Sent(seq, instant(sent_at), said == b"duplicate", tuple(map(bytes.decode, spoken_to)))

    async def _history(
        self, client: AnyRedis, user: str, before: int | None, after: int | None, limit: int
    ) -> Page:
        core.check_person(user)
        page = await history_of(client, self.id, self._keys, user, before, after, limit)
        tally("chat:fetched", len(page.messages))
        return page

    async def _message_at(self, client: AnyRedis, user: str, seq: int) -> ChatMessage:
        check_seq("seq", seq)
        page = await self._history(client, user, None, max(seq, 1) - 1, 1)
        if not page.messages or page.messages[0].seq != seq:
            raise MessageNotFound(f"There is no message {seq} in the chat {self.id!r}.")
        return page.messages[0]

    async def _acknowledge(self, client: AnyRedis, user: str, seq: int) -> int:
        core.check_person(user)
        args = [user, check_seq("seq", seq), self._channel, core.READS_TOLD]
        position, is_due = await core.read.acall(client, keys=self._keys.read, args=args)
        if position < 0:
            raise core.unknown(self.id)
        if is_due:
            await core.trim_all(client, self.id, runs=1)
        return int(position)

    async def _news(self, client: AnyRedis, user: str) -> ChatNews:
        core.check_person(user)
        if not is_id(self.id):
            raise core.unknown(self.id)
        args = [user, 0, core.MAX_BYTES, core.READS_TOLD, self.id, "last", ""]
        _now, found = await core.look.acall(client, keys=core.keys_of_look(bucket(self.id)), args=args)
        if found == 0:
            raise core.unknown(self.id)
        return read_news(self.id, found)


def check_seq(what: str, seq: object) -> int:
    """*seq*, if it can be one; what is above all seqs is the last. Raises ValueError."""
    if isinstance(seq, bool) or not isinstance(seq, int) or seq < 0:
        raise ValueError(f"{what} is {repr(seq)[:80]}; it must be a whole number from 0 on.")
    return min(seq, _LAST)


def check_limit(limit: object) -> int:
    """*limit*, if it can be how many messages are asked for. Raises ValueError."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST:
        raise ValueError(f"limit is {repr(limit)[:80]}; it must be a whole number, 1 to {_MOST}.")
    return limit


async def history_of(
    client: AnyRedis,
    chat_id: str,
    keys: core.Keys,
    user: str,
    before: int | None,
    after: int | None,
    limit: int,
) -> Page:
    """A page of the history as *user* may see it, "" may see all. Raises ChatNotFound, ValueError."""
    if before is not None and after is not None:
        raise ValueError("Of before and after only one can be asked for.")
    bounds = [
        "" if seq is None else check_seq(what, seq) for what, seq in (("before", before), ("after", after))
    ]
    args = [user, *bounds, check_limit(limit), core.MAX_BYTES]
    found = await core.history.acall(client, keys=keys.history, args=args)
    if not found:
        raise core.unknown(chat_id)
    oldest, has_more, entries = found
    return Page([read_message(chat_id, entry) for entry in entries], bool(has_more), int(oldest))
