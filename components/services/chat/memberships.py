"""
Membership: who is in a chat, comes and goes.

An inbox lies in another slot than the chats in it. So who enters has the hint in his inbox before he is a member, and
who leaves loses it after: what may be left over is a hint that the chat denies, and inboxes clear these away.
"""

from __future__ import annotations

from collections.abc import Sequence

from components.kit import news
from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.stored import number_of, text_of
from components.services.chat import core
from components.services.chat.formats import ROLES, instant, muted_until, write_event
from components.services.chat.ids import new_call
from components.services.chat.limits import charge, check_room, hint_all
from components.services.chat.records import EventKind, Member, Role
from components.services.chat.talking import Talk


class Membership(Talk):
    """The members of a chat. *by* is who does it, None is the system, which may do all."""

    def members(self, *, user: str | None = None) -> list[Member]:
        """Owners first, then moderators, then by joining; ChatNotFound unless *user*, if given, is one of them."""
        return at_once(self._members(get_client(), user))

    async def amembers(self, *, user: str | None = None) -> list[Member]:
        """members(), awaited."""
        return await self._members(get_async_client(), user)

    def join(self, user: str) -> None:
        """
        Come in by oneself; who is in already stays as they are. Raises ChatNotFound unless the chat is open, Blocked,
        ChatClosed, TooManyMembers, TooManyChats, TooFast.
        """
        at_once(self._add(get_client(), [user], core.check_person(user)))

    async def ajoin(self, user: str) -> None:
        """join(), awaited."""
        await self._add(get_async_client(), [user], core.check_person(user))

    def add(self, users: Sequence[str], *, by: str | None = None) -> list[str]:
        """
        Let these in; those who were not in it before. *by* needs to be owner or moderator, unless the chat is open.

        The limits of the site hold for *by*, and for those who are let in. Raises NotAllowed, Blocked,
        TooManyMembers, TooManyChats, TooFast, and nobody is let in then.
        """
        return at_once(self._add(get_client(), users, by))

    async def aadd(self, users: Sequence[str], *, by: str | None = None) -> list[str]:
        """add(), awaited."""
        return await self._add(get_async_client(), users, by)

    def leave(self, user: str) -> None:
        """
        Go. After the last owner the first moderator is owner, else the first member. After the last member the chat
        is gone.
        """
        at_once(self._remove(get_client(), user, user, EventKind.LEFT))

    async def aleave(self, user: str) -> None:
        """leave(), awaited."""
        await self._remove(get_async_client(), user, user, EventKind.LEFT)

    def kick(self, user: str, *, by: str | None = None) -> None:
        """Let a member be none. Raises NotAllowed unless the role of *by* is above his, NotAMember."""
        at_once(self._remove(get_client(), user, by, EventKind.KICKED))

    async def akick(self, user: str, *, by: str | None = None) -> None:
        """kick(), awaited."""
        await self._remove(get_async_client(), user, by, EventKind.KICKED)

    def block(self, user: str, *, by: str | None = None) -> None:
        """Let a person not come back, nor come; a member is kicked. Raises NotAllowed."""
        at_once(self._remove(get_client(), user, by, EventKind.BLOCKED))

    async def ablock(self, user: str, *, by: str | None = None) -> None:
        """block(), awaited."""
        await self._remove(get_async_client(), user, by, EventKind.BLOCKED)

    async def _members(self, client: AnyRedis, user: str | None) -> list[Member]:
        who = "" if user is None else core.check_person(user)
        found = await core.members.acall(client, keys=self._keys.members, args=[who])
        if not found:
            raise core.unknown(self.id)
        members = []
        for person, words, read_seq, unread, mentions in found[1:]:
            try:
                role, number, joined_at, _seen, _ordinal, muted, _call = words.decode().split(" ", 6)
                until = muted_until(muted)
                if until and until <= instant(found[0]):
                    until = None
                member = Member(
                    person.decode(), ROLES[role], instant(int(joined_at)), read_seq, unread, mentions, until
                )
                members.append(("omu".index(role), int(number), member))
            except (ValueError, KeyError, OverflowError):
                role_of_none = (Role.MEMBER, instant(0), number_of(read_seq), 0, 0, None, True)
                members.append((len(ROLES), 0, Member(text_of(person), *role_of_none)))
        return [member for _rank, _number, member in sorted(members, key=lambda each: each[:2])]

    async def _add(self, client: AnyRedis, users: Sequence[str], by: str | None) -> list[str]:
        actor = core.check_actor(by)
        persons = list(dict.fromkeys(map(core.check_person, users)))
        new, out = await self._enter(client, actor, persons)
        if new and actor:
            await charge(client, actor, people=len(new))
            await check_room(client, self.id, new)
        while new:
            await hint_all(client, self.id, new, is_limited=bool(actor))
            entered = await self._enter(client, actor, persons, after=out)
            if entered[0] is not None:
                # If much time has passed between the two, the hint may have been cleared away.
                await hint_all(client, self.id, entered[0])
                await core.trim_all(client, self.id, runs=1)
                return entered[0]
            # Somebody was let out meanwhile. If it was one of these, and erased, their hint is gone.
            new, out = await self._enter(client, actor, persons)
        return []

    async def _enter(
        self, client: AnyRedis, by: str, persons: Sequence[str], *, after: bytes = b""
    ) -> tuple[list[str] | None, bytes]:
        """
        Return who is new among *persons*, and when somebody was let out last; with *after* let them in.

        None if somebody was let out after that.
        """
        args: list[str | bytes | int] = [by, new_call(), int(bool(after)), self._channel, after]
        for person in persons:
            event = write_event(EventKind.JOINED, by, person)
            args += [person, event, news.channel("inbox", person)]
        said, *facts = await core.enter.acall(client, keys=self._keys.enter, args=args)
        if said == b"again":
            return None, b""
        if said != b"added":
            raise core.refusal(self.id, said, *facts)
        return [person.decode() for person in facts[1:]], facts[0]

    async def _remove(self, client: AnyRedis, user: str, by: str | None, kind: EventKind) -> None:
        actor = core.check_actor(by)
        body = write_event(kind, actor, core.check_person(user))
        inbox = news.channel("inbox", user)
        args = [self.id, user, actor, new_call(), body, kind, self._channel, inbox]
        said = await core.remove.acall(client, keys=self._keys.remove, args=args)
        if said not in (b"removed", b"blocked", b"nothing"):
            raise core.refusal(self.id, said)
        if said == b"removed":
            await core.forget_hints(client, user, [self.id], young=core.YOUNG_AFTER_LEAVING)
        if said != b"nothing":
            await core.trim_all(client, self.id, runs=1)
