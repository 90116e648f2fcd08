"""
Moderation: what owners and moderators do about members and messages. *by* is who does it; None is the system, which
may do all. Each is one script, which looks at the roles and appends the event that tells the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.scripts import Script
from components.kit.values import check_seconds
from components.services.chat import core
from components.services.chat.formats import LETTERS, write_event
from components.services.chat.ids import new_call
from components.services.chat.memberships import Membership
from components.services.chat.records import EventKind, Role
from components.services.chat.talking import check_seq


class Moderation(Membership):
    """The moderation of a chat. Raises NotAllowed, if the role of *by* does not include it."""

    def unblock(self, user: str, *, by: str | None = None) -> None:
        """Let a blocked person come back, if he is let in."""
        at_once(self._unblock(get_client(), user, by))

    async def aunblock(self, user: str, *, by: str | None = None) -> None:
        """unblock(), awaited."""
        await self._unblock(get_async_client(), user, by)

    def mute(self, user: str, *, seconds: float | None = None, by: str | None = None) -> None:
        """
        Mute a member of a lower role for so many seconds; None: until it is taken back. Raises NotAMember.

        A mute holds on for who leaves, or is put out, and comes back.
        """
        at_once(self._mute(get_client(), user, seconds, by))

    async def amute(self, user: str, *, seconds: float | None = None, by: str | None = None) -> None:
        """mute(), awaited."""
        await self._mute(get_async_client(), user, seconds, by)

    def unmute(self, user: str, *, by: str | None = None) -> None:
        """Unmute a member, or who has left while they were muted. Raises NotAMember for anybody else."""
        at_once(self._unmute(get_client(), user, by))

    async def aunmute(self, user: str, *, by: str | None = None) -> None:
        """unmute(), awaited."""
        await self._unmute(get_async_client(), user, by)

    def set_role(self, user: str, role: Role | str, *, by: str | None = None) -> None:
        """Give a member a role, as an owner. There is always an owner. Raises NotAMember, ValueError."""
        at_once(self._set_role(get_client(), user, role, by))

    async def aset_role(self, user: str, role: Role | str, *, by: str | None = None) -> None:
        """set_role(), awaited."""
        await self._set_role(get_async_client(), user, role, by)

    def delete_message(self, seq: int, *, by: str | None = None) -> None:
        """
        Let a message be gone, one's own or as a moderator; an event tells all who have it. Raises MessageNotFound.
        """
        at_once(self._delete_message(get_client(), seq, by))

    async def adelete_message(self, seq: int, *, by: str | None = None) -> None:
        """delete_message(), awaited."""
        await self._delete_message(get_async_client(), seq, by)

    def blocked(self) -> dict[str, datetime]:
        """Who may not come back, and since when."""
        return at_once(self._blocked(get_client()))

    async def ablocked(self) -> dict[str, datetime]:
        """blocked(), awaited."""
        return await self._blocked(get_async_client())

    def muted(self) -> dict[str, datetime]:
        """Say who has left while they were muted, and until when they are, which may have passed."""
        return at_once(self._muted(get_client()))

    async def amuted(self) -> dict[str, datetime]:
        """muted(), awaited."""
        return await self._muted(get_async_client())

    async def _unblock(self, client: AnyRedis, user: str, by: str | None) -> None:
        actor, call = core.check_actor(by), new_call()
        event = write_event(EventKind.UNBLOCKED, actor, core.check_person(user))
        args = [user, actor, call, event, self._channel]
        await self._do(client, core.unblock, self._keys.unblock, args)

    async def _mute(self, client: AnyRedis, user: str, seconds: float | None, by: str | None) -> None:
        muted = -1 if seconds is None else round(check_seconds("time of a mute", seconds) * 1000)
        await self._set_muted(client, user, muted, by, EventKind.MUTED)

    async def _unmute(self, client: AnyRedis, user: str, by: str | None) -> None:
        await self._set_muted(client, user, 0, by, EventKind.UNMUTED)

    async def _set_muted(
        self, client: AnyRedis, user: str, muted: int, by: str | None, kind: EventKind
    ) -> None:
        actor, call = core.check_actor(by), new_call()
        event = write_event(kind, actor, core.check_person(user), detail=None)
        args = [user, muted, actor, call, event, self._channel]
        await self._do(client, core.mute, self._keys.mute, args)

    async def _set_role(self, client: AnyRedis, user: str, role: Role | str, by: str | None) -> None:
        actor, call, wanted = core.check_actor(by), new_call(), Role(role)
        event = write_event(EventKind.ROLE, actor, core.check_person(user), wanted)
        args = [user, LETTERS[wanted], actor, call, event, self._channel]
        await self._do(client, core.role, self._keys.role, args)

    async def _delete_message(self, client: AnyRedis, seq: int, by: str | None) -> None:
        actor, call = core.check_actor(by), new_call()
        event = write_event(EventKind.DELETED, actor, detail=str(check_seq("seq", seq)))
        args = [check_seq("seq", seq), actor, call, event, self._channel]
        await self._do(client, core.delete_message, self._keys.delete_message, args)

    async def _blocked(self, client: AnyRedis) -> dict[str, datetime]:
        return await core.blocked_of(client, self._keys)

    async def _muted(self, client: AnyRedis) -> dict[str, datetime]:
        return await core.muted_of(client, self._keys)

    async def _do(self, client: AnyRedis, script: Script, keys: Sequence[str], args: Sequence[Any]) -> None:
        said = await script.acall(client, keys=keys, args=args)
        if said not in (b"done", b"nothing"):
            raise core.refusal(self.id, said)
        if said == b"done":
            await core.trim_all(client, self.id, runs=1)
