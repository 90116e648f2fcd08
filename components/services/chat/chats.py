"""
Chat: a group chat in which nothing is lost by who is away (chapter 6.5.2 of the book).

Messages and events of a chat are one sequence, which never restarts; each member has a reading position in it, which
he moves himself. What he has not read stays until the limits of the chat let it go, however far the others have read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from components.exceptions import ChatExists, TooManyMembers
from components.kit import news
from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.scripts import reading
from components.services.chat import core
from components.services.chat.controls import Controls
from components.services.chat.formats import (
    check_client_id,
    check_settings,
    check_title,
    write_body,
    write_event,
    write_settings,
)
from components.services.chat.ids import check_id, new_client_id, new_id
from components.services.chat.limits import charge, check_room, hint_all
from components.services.chat.records import ChatSettings, EventKind
from components.services.counters import tally

#: How a chat works of which nothing else is said.
USUAL = ChatSettings()


class Chat(Controls):
    """The chat *id*. Its methods raise RedisUnavailable; ChatNotFound if there is none, or who asks is no member."""

    @classmethod
    def create(
        cls,
        owner: str,
        *,
        members: Sequence[str] = (),
        text: str = "",
        data: Any = None,
        title: str = "",
        id: str | None = None,
        client_id: str | None = None,
        settings: ChatSettings = USUAL,
        by: str | None = None,
    ) -> Self:
        """
        Create a chat of *owner* and *members*, with a first message if there is a text, or data.

        *by* is who asks for it, mostly the owner: the limits of the site hold for them, and for the members. None is
        the system, which may do all. Asked for again with the same id, owner and client id it is the same chat.

        Raises ChatExists, InvalidName, TooManyMembers, InvalidMessage, InvalidLimit, InvalidDuration, TooManyChats,
        TooFast; nothing is stored of it then.
        """
        chat = cls(new_id() if id is None else check_id(id))
        at_once(
            chat._create(
                get_client(), [owner, *members], text, data, check_title(title), client_id, settings, by
            )
        )
        return chat

    @classmethod
    async def acreate(
        cls,
        owner: str,
        *,
        members: Sequence[str] = (),
        text: str = "",
        data: Any = None,
        title: str = "",
        id: str | None = None,
        client_id: str | None = None,
        settings: ChatSettings = USUAL,
        by: str | None = None,
    ) -> Self:
        """create(), awaited."""
        chat = cls(new_id() if id is None else check_id(id))
        await chat._create(
            get_async_client(), [owner, *members], text, data, check_title(title), client_id, settings, by
        )
        return chat

    async def _create(
        self,
        client: AnyRedis,
        members: Sequence[str],
        text: str,
        data: Any,
        title: str,
        client_id: str | None,
        settings: ChatSettings,
        by: str | None,
    ) -> None:
        actor = core.check_actor(by)
        persons = list(dict.fromkeys(map(core.check_person, members)))
        check_settings(settings)
        if len(persons) > settings.max_members:
            raise TooManyMembers(f"A chat of {len(persons):,} members: it takes {settings.max_members:,}.")
        body, size = write_body(text, data) if text or data is not None else (b"", 0)
        if len(text) > settings.max_text or size > settings.max_data:
            raise core.refusal(self.id, b"long", settings.max_text, settings.max_data)
        call = new_client_id() if client_id is None else check_client_id(client_id)
        event = write_event(EventKind.CREATED, persons[0])
        args = [self.id, call, title, write_settings(settings), event, body, persons[0]]
        for person in persons:
            args += [person, news.channel("inbox", person)]
        if actor and not await self._is_made(client, persons[0], call):
            others = sum(person != actor for person in persons)
            await charge(client, actor, chat_id=self.id, people=others)
            await check_room(client, self.id, persons)
        await hint_all(client, self.id, persons, is_limited=bool(actor))
        if await core.create.acall(client, keys=self._keys.create, args=args) != b"created":
            raise ChatExists(f"There is a chat {self.id!r} already.")
        # An erasure may have taken a hint between the two.
        await hint_all(client, self.id, persons)
        tally("chat:sent", 1 if body else 0)

    async def _is_made(self, client: AnyRedis, owner: str, call: str) -> bool:
        """Return whether there is the chat that this call would create: it is asked for again."""
        found = await reading(lambda: client.hmget(self._keys.settings, ["created_by", "call", "gone"]))
        return list(found) == [owner.encode(), call.encode(), None]
