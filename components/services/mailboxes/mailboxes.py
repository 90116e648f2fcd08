"""
Mailbox: messages for one recipient, which pulls them when it has time (chapter 6.5.1 of the book).

A message comes again with each pull until it is acknowledged, so none is lost with the process that pulled it; it may
be handed out twice, and then says so. How a mailbox stands in Redis is in core.py. Who waits for mail blocks on the
stream, in a coroutine on news of it (services/news): one connection for all that wait in an event loop.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from components.kit.at_once import at_once, cancellations
from components.kit.client import SHORTEST_BLOCK, get_async_client, get_client, longest_block
from components.kit.errors import redis_errors
from components.kit.leases import clock
from components.kit.news import Listener, Turns
from components.kit.values import check_seconds
from components.services.mailboxes.core import Core, check_id, check_pulled, new_call
from components.services.mailboxes.readers import look
from components.services.mailboxes.records import Delivery, Mail, MailboxInfo, Mails, Pushed


class Mailbox(Core):
    """
    The mailbox of the recipient *name*. One that has *limit* messages refuses more, or drops its oldest.

    Sender and recipient must agree on *limit* and *when_full* only in so far as they push.
    Raises InvalidName, InvalidLimit, ValueError. Every method raises RedisUnavailable.
    """

    def push(self, sender: str, text: str = "", *, data: Any = None, client_id: str | None = None) -> Pushed:
        """
        Put a message of *sender* into it: a text, data that are JSON, or both.

        Pushed twice by the same sender under the same *client_id*, within a day at least, it is stored once.
        Raises MailboxFull, Blocked, InvalidMessage, InvalidName.
        """
        return at_once(self._push(get_client(), sender, text, data, client_id))

    async def apush(
        self, sender: str, text: str = "", *, data: Any = None, client_id: str | None = None
    ) -> Pushed:
        """push(), awaited."""
        return await self._push(get_async_client(), sender, text, data, client_id)

    def pull(
        self, limit: int | None = 10, *, after: int | None = None, newest: bool = False, wait: float = 0.0
    ) -> Mails:
        """
        Up to *limit* messages (None: all), the oldest or the *newest*, in the order in which they came.

        With *after*, what was handed out up to that id is acknowledged before, in one step. If there is nothing, a
        message is waited for, *wait* seconds. Raises InvalidLimit, InvalidDuration, ValueError.
        """
        ask = self._asking(limit, after, newest, wait)
        client, until = get_client(), clock() + wait
        mails = at_once(self._pull(client, *ask))
        while not mails and (left := until - clock()) > 0:
            block = max(SHORTEST_BLOCK, min(left, longest_block(client)))
            with redis_errors():
                client.xread({self._keys.messages: 0}, count=1, block=round(block * 1000))
            mails = at_once(self._pull(client, *ask))
        return mails

    async def apull(
        self, limit: int | None = 10, *, after: int | None = None, newest: bool = False, wait: float = 0.0
    ) -> Mails:
        """pull(), awaited. However many wait in an event loop, they do so on one connection."""
        ask = self._asking(limit, after, newest, wait)
        client, until, cancelled = get_async_client(), clock() + wait, cancellations()
        if wait == 0:
            return await self._pull(client, *ask)
        async with Listener.of_the_loop().interest([self._channel]) as interest:
            while True:
                async with Turns.of_the_loop():
                    mails = await self._pull(client, *ask)
                if cancellations() > cancelled:
                    raise asyncio.CancelledError
                left = until - clock()
                if mails or left <= 0:
                    return mails
                await interest.wait(left)

    def peek(self, limit: int | None = 10, *, newest: bool = False) -> list[Mail]:
        """The same messages, without handing them out. Raises InvalidLimit."""
        return at_once(self._peek(get_client(), limit, newest))

    async def apeek(self, limit: int | None = 10, *, newest: bool = False) -> list[Mail]:
        """peek(), awaited."""
        return await self._peek(get_async_client(), limit, newest)

    def acknowledge(self, id: int) -> int:
        """
        What was handed out up to this id goes, and how many that were; what was not handed out stays.

        Raises ValueError if *id* can be none.
        """
        return at_once(self._acknowledge(get_client(), id))

    async def aacknowledge(self, id: int) -> int:
        """acknowledge(), awaited."""
        return await self._acknowledge(get_async_client(), id)

    def status(self, id: int, *, sender: str | None = None) -> Delivery:
        """
        What became of a message, and when its recipient last pulled.

        With *sender*, only if it is his; that is known while the message is there, and for a day after it went.
        Raises MessageNotFound, also for what was dropped longer ago than is remembered; ValueError.
        """
        return at_once(self._status(get_client(), id, sender))

    async def astatus(self, id: int, *, sender: str | None = None) -> Delivery:
        """status(), awaited."""
        return await self._status(get_async_client(), id, sender)

    def depth(self) -> int:
        """How many messages are there, handed out or not."""
        return at_once(self._depth(get_client()))

    async def adepth(self) -> int:
        """depth(), awaited."""
        return await self._depth(get_async_client())

    def missed(self) -> int:
        """How many were dropped that the recipient does not know of, as Mails.missed says."""
        return at_once(self._missed(get_client()))

    async def amissed(self) -> int:
        """missed(), awaited."""
        return await self._missed(get_async_client())

    def info(self) -> MailboxInfo:
        """How it stands now."""
        return at_once(look(get_client(), [self.name]))[0]

    async def ainfo(self) -> MailboxInfo:
        """info(), awaited."""
        return (await look(get_async_client(), [self.name]))[0]

    def block(self, sender: str) -> None:
        """Refuse the mail of *sender* from now on. What is there stays."""
        at_once(self._block(get_client(), sender))

    async def ablock(self, sender: str) -> None:
        """block(), awaited."""
        await self._block(get_async_client(), sender)

    def unblock(self, sender: str) -> None:
        """Take the mail of *sender* again."""
        at_once(self._unblock(get_client(), sender))

    async def aunblock(self, sender: str) -> None:
        """unblock(), awaited."""
        await self._unblock(get_async_client(), sender)

    def blocked(self) -> dict[str, datetime]:
        """Whose mail is refused, and since when."""
        return at_once(self._blocked(get_client()))

    async def ablocked(self) -> dict[str, datetime]:
        """blocked(), awaited."""
        return await self._blocked(get_async_client())

    def clear(self) -> int:
        """Drop all messages; how many there were. Senders and recipient learn that they were dropped."""
        return at_once(self._clear(get_client()))

    async def aclear(self) -> int:
        """clear(), awaited."""
        return await self._clear(get_async_client())

    def erase(self) -> None:
        """Let nothing be left of it, as if it had never been used. Messages in other mailboxes belong to others."""
        at_once(self._erase(get_client()))

    async def aerase(self) -> None:
        """erase(), awaited."""
        await self._erase(get_async_client())

    def _asking(
        self, limit: int | None, after: int | None, newest: bool, wait: float
    ) -> tuple[int | None, int, bool, str]:
        """What pull.lua is asked, each time alike: so what it handed out itself is not handed out again."""
        check_seconds("wait", wait, may_be_zero=True)
        return check_pulled(limit), 0 if after is None else check_id(after), newest, new_call()
