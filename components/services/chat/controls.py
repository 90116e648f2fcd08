"""
Controls: what is done with a chat as a whole, by its owners or by the system. The order of the bases is that of
what builds on what; together they are what Chat offers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from components.kit import news
from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.scripts import reading
from components.services.chat import core
from components.services.chat.formats import (
    check_settings,
    check_title,
    read_settings,
    write_event,
    write_settings,
)
from components.services.chat.ids import new_call
from components.services.chat.moderation import Moderation
from components.services.chat.readers import look_at
from components.services.chat.records import ChatInfo, EventKind
from components.services.chat.talking import check_seq


class Controls(Moderation):
    """The chat as a whole. Raises NotAllowed, if the role of *by* does not include it; None is the system."""

    def rename(self, title: str, *, by: str | None = None) -> None:
        """Give it another title, as owner or moderator. Raises InvalidMessage."""
        at_once(self._rename(get_client(), title, by))

    async def arename(self, title: str, *, by: str | None = None) -> None:
        """rename(), awaited."""
        await self._rename(get_async_client(), title, by)

    def configure(self, *, by: str | None = None, **settings: Any) -> None:
        """Let some of ChatSettings be other, as owner. Raises TypeError, InvalidLimit, InvalidDuration."""
        at_once(self._configure(get_client(), by, settings))

    async def aconfigure(self, *, by: str | None = None, **settings: Any) -> None:
        """configure(), awaited."""
        await self._configure(get_async_client(), by, settings)

    def close(self, *, by: str | None = None) -> None:
        """Let it be read and no more written, as owner."""
        at_once(self._close(get_client(), by))

    async def aclose(self, *, by: str | None = None) -> None:
        """close(), awaited."""
        await self._close(get_async_client(), by)

    def reopen(self, *, by: str | None = None) -> None:
        """Let it be written again, as owner."""
        at_once(self._reopen(get_client(), by))

    async def areopen(self, *, by: str | None = None) -> None:
        """reopen(), awaited."""
        await self._reopen(get_async_client(), by)

    def trim(self, *, before: int) -> int:
        """Let all before this seq go, as the system; how many messages and events that were."""
        return at_once(self._trim(get_client(), before))

    async def atrim(self, *, before: int) -> int:
        """trim(), awaited."""
        return await self._trim(get_async_client(), before)

    def info(self) -> ChatInfo:
        """How it stands, for the system."""
        return at_once(self._info(get_client()))

    async def ainfo(self) -> ChatInfo:
        """info(), awaited."""
        return await self._info(get_async_client())

    def delete(self) -> None:
        """Let all of it be gone, as the system. A chat of the same id that is made within a year goes on counting."""
        at_once(self._delete(get_client()))

    async def adelete(self) -> None:
        """delete(), awaited."""
        await self._delete(get_async_client())

    async def _rename(self, client: AnyRedis, title: str, by: str | None) -> None:
        event = write_event(EventKind.RENAMED, core.check_actor(by), detail=check_title(title))
        await self._change(client, "title", title, "om", by, event)

    async def _close(self, client: AnyRedis, by: str | None) -> None:
        await self._change(
            client, "closed", "1", "o", by, write_event(EventKind.CLOSED, core.check_actor(by))
        )

    async def _reopen(self, client: AnyRedis, by: str | None) -> None:
        await self._change(
            client, "closed", "", "o", by, write_event(EventKind.REOPENED, core.check_actor(by))
        )

    async def _configure(self, client: AnyRedis, by: str | None, settings: dict[str, Any]) -> None:
        event = write_event(EventKind.CONFIGURED, core.check_actor(by))
        said = b"other"
        while said == b"other":  # somebody configures it at the same moment
            found = await reading(lambda: client.hget(self._keys.settings, "settings"))
            if found is None:
                raise core.unknown(self.id)
            before = found.decode()
            after = write_settings(check_settings(replace(read_settings(before), **settings)))
            # What the settings of before let go is told apart from what is there by nobody else.
            await core.trim_all(client, self.id)
            said = await self._change(client, "settings", after, "o", by, event, must=before)
        await core.trim_all(client, self.id)

    async def _change(
        self,
        client: AnyRedis,
        name: str,
        value: str,
        roles: str,
        by: str | None,
        event: bytes,
        must: str = "*",
    ) -> bytes:
        args = [name, must, value, roles, core.check_actor(by), new_call(), event, self._channel]
        said: bytes = await core.change.acall(client, keys=self._keys.change, args=args)
        if said not in (b"done", b"nothing", b"other"):
            raise core.refusal(self.id, said)
        if said == b"done":
            await core.trim_all(client, self.id, runs=1)
        return said

    async def _trim(self, client: AnyRedis, before: int) -> int:
        keys = self._keys
        if not await reading(lambda: client.hexists(keys.settings, "settings")):
            raise core.unknown(self.id)
        return await core.trim_all(client, self.id, before=max(check_seq("before", before) - 1, 0))

    async def _info(self, client: AnyRedis) -> ChatInfo:
        _keys = self._keys
        [info] = await look_at(client, [self.id])
        if info is None:
            raise core.unknown(self.id)
        return info

    async def _delete(self, client: AnyRedis) -> None:
        args = [self.id, self._channel, news.channel("inbox", "")]
        await core.delete.acall(client, keys=self._keys.delete, args=args)
