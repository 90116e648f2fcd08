"""
Chat: a group chat in which members who are away lose nothing (chapter 6.5.2 of the book).

Unread messages stay until the limits of the chat remove them, however far the other members have read. All keys of a
chat are in the slot of its bucket.

Sending is one script, and so one round trip. The script checks whether the person is in the chat, is muted, sends too
fast, or has sent this message before; then it stores the message and updates the unread counts. A message that is
sent again with the same client id is recognised while it is in the history. Messages that are too old are removed now
and then, after the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha1
from time import thread_time
from typing import Any

from components.conf import conf
from components.exceptions import (
    Blocked,
    ChatClosed,
    ChatExists,
    ChatNotFound,
    ComponentsError,
    InvalidMessage,
    MessageNotFound,
    Muted,
    NotAllowed,
    NotAMember,
    TooFast,
    TooManyBlocked,
    TooManyMembers,
)
from components.kit.bodies import write_body
from components.kit.client import AnyRedis
from components.kit.decoding import EPOCH, from_ms, number_of, text_of
from components.kit.ids import new_call, reused, uuid7
from components.kit.keyspace import bucket
from components.kit.pubsub import channel
from components.kit.scripts import Script, aside, idempotent, pipelined
from components.kit.sync_async import both
from components.kit.translation import gettext, grouped
from components.kit.validation import check_int, check_seconds, check_several
from components.services.chat.emoji import check_emoji
from components.services.chat.facts import (
    ChatInfo,
    ChatMessage,
    ChatNews,
    EventKind,
    Found,
    Member,
    Page,
    Role,
    Sent,
)
from components.services.chat.formats import (
    LETTERS,
    check_client_id,
    check_title,
    read_members,
    read_message,
    read_news,
    write_event,
)
from components.services.chat.ids import check_actor, check_id, check_person, content_of, is_id, new_client_id
from components.services.chat.inbox_index import (
    YOUNG_AFTER_LEAVING,
    check_room,
    drop_hints,
    forget_hints,
    hints_of,
    write_hints,
)
from components.services.chat.keys import ChatKeys
from components.services.chat.limits import charge
from components.services.chat.search import Search
from components.services.chat.settings import (
    SETTINGS,
    ChatSettings,
    check_setting,
    check_settings,
    read_settings,
    write_setting,
    write_settings,
)
from components.services.counters import tally

MAX_BYTES = 65_536  # bytes of bodies of one chat in one answer, unless a single message is longer
READS_TOLD = 50  # most members of a chat that shows how far each has read
TRIMMED = 500  # entries that one run of the script removes
MAX_LIMIT = 200  # messages in one page
SEARCHED = 10  # pages that one search reads
SECONDS = 0.25  # of a processor, after which a search ends with the message that it compares
_LAST = 2**53  # above all seqs
#: The default settings.
USUAL = ChatSettings()
#: Fields of the HASH that the control room shows besides the settings.
_FACTS = ("title", "created_at", "created_by", "closed", "seq", "bytes", "at", "gone", "n")

CHANGE = Script("chat/change")
CREATE = Script("chat/create")
DELETE = Script("chat/delete")
DELETE_MESSAGE = Script("chat/delete_message")
EDIT = Script("chat/edit")
ENTER = Script("chat/enter")
HISTORY = Script("chat/history")
LOOK = Script("chat/look")
MEMBERS = Script("chat/members")
MUTE = Script("chat/mute")
REACT = Script("chat/react")
READ = Script("chat/read")
REMOVE = Script("chat/remove")
ROLE = Script("chat/role")
SEND = Script("chat/send")
TRIM = Script("chat/trim")
UNBLOCK = Script("chat/unblock")


class Chat:
    """
    The chat *id*.

    *by* is the person who acts; None is the system, which may do everything. Every method raises RedisUnavailable,
    and raises ChatNotFound if the chat does not exist or the acting person is not in it. Methods with *by* raise
    NotAllowed if the role of that person does not include the action.
    """

    def __init__(self, id: str) -> None:
        self.id = id

    @staticmethod
    async def _create(
        cls: type[Chat],
        client: AnyRedis,
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
    ) -> Chat:
        """
        Create a chat of *owner* and *members*, with a first message if *text* or *data* is given.

        *by* is the person who creates it, usually the owner: the limits of the site apply to them and to the members.
        A repeated call with the same id, owner and client id returns the same chat. It does not create it again, even
        if it has ended since, for a year.

        Raises ChatExists, InvalidName, TooManyMembers, InvalidMessage, InvalidValue, TooManyChats,
        TooFast; nothing is stored then.
        """
        chat = cls(uuid7() if id is None else check_id(id))
        check_title(title)
        actor = check_actor(by)
        persons = list(dict.fromkeys(map(check_person, [owner, *check_several("members", members)])))
        check_settings(settings)
        if len(persons) > settings.max_members:
            raise TooManyMembers(
                f"The chat {chat.id!r} cannot begin with {len(persons):,} members: it takes "
                f"{settings.max_members:,} at most."
            )
        body, size = write_body(text, data) if text or data is not None else (b"", 0)
        if len(text) > settings.max_text or size > settings.max_data:
            raise refusal(chat.id, b"long", settings.max_text, settings.max_data)
        call, chosen = (
            new_client_id() if client_id is None else check_client_id(client_id),
            write_settings(settings),
        )
        has_ended, is_repeated = await chat._made_by(client, persons[0], call)
        if actor and not (has_ended or is_repeated):
            others = sum(person != actor for person in persons)
            await charge(client, actor, chat_id=chat.id, people=others)
            await check_room(client, chat.id, persons)
        if not has_ended:
            await write_hints(client, chat.id, persons, is_limited=bool(actor))
        said = await CREATE.run(
            client,
            chat._keys,
            id=chat.id,
            client_id=call,
            content=content_of(
                title, body, sorted(persons), sorted(chosen.items() - write_settings(USUAL).items())
            ),
            title=title,
            event=write_event(EventKind.CREATED, persons[0]),
            message=body,
            inboxes=channel("inbox", ""),
            people=len(persons),
            more=[*persons, *(word for pair in chosen.items() for word in pair)],
        )
        if said == b"reused":
            raise reused()
        if said == b"ended":
            return chat
        if said != b"created":
            raise chat._exists()
        # An erasure may have removed a hint between the first write and the creation.
        await write_hints(client, chat.id, persons)
        tally("chat:sent", 1 if body else 0)
        return chat

    _twins = both(_create)
    create, acreate = classmethod(_twins[0]), classmethod(_twins[1])

    async def _made_by(self, client: AnyRedis, owner: str, call: str) -> tuple[bool, bool]:
        """
        Return whether this call has created the chat before: one that has ended, and one that is there.

        Raises ChatExists if another call has, before anybody gets a hint.
        """
        fields = ["made", "created_by", "call", "seq", "gone"]
        made, created_by, by_call, seq, gone = await idempotent(lambda: client.hmget(self._keys.chat, fields))
        digest = sha1(f"{owner}\0{call}".encode(), usedforsecurity=False).hexdigest()[:16]
        is_repeated = (created_by, by_call) == (owner.encode(), call.encode())
        if seq and not gone and not is_repeated:
            raise self._exists()
        return made == digest.encode(), is_repeated

    def _exists(self) -> ChatExists:
        return ChatExists(f"There is a chat {self.id!r} already.")

    # Sending, reading, and acknowledging.

    async def _send(
        self,
        client: AnyRedis,
        sender: str,
        text: str = "",
        *,
        data: Any = None,
        mentions: Sequence[str] = (),
        client_id: str | None = None,
        reply_to: int | None = None,
    ) -> Sent:
        """
        Send a message: a text, JSON data, or both. A message that is sent again with the same *client_id* is stored
        once. *reply_to* is the seq of a message that it replies to; it may be gone.

        Raises ChatClosed, Muted, TooFast, InvalidMessage, MessageNotFound, ValueError.
        """
        check_person(sender)
        body, size = write_body(text, data)
        args = SEND.contract.args_of(
            {
                "id": self.id,
                "sender": sender,
                "client_id": new_client_id() if client_id is None else check_client_id(client_id),
                "body": body,
                "characters": len(text),
                "data_bytes": size,
                "channel": self._channel,
                "reply_to": "" if reply_to is None else check_seq("reply_to", reply_to),
                "mentioned": _mentioned(mentions) if mentions else (),
            }
        )
        keys = _keys_of_send(self.id, self._keys.chat)
        said, *facts = answer = await SEND.acall(client, keys=keys, args=args)
        if said not in (b"sent", b"duplicate"):
            raise refusal(self.id, *answer)
        seq, sent_at, is_due, spoken_to = facts
        if said == b"sent":
            tally("chat:sent")
        if is_due:
            await self._trim_some(client)
        return Sent(seq, from_ms(sent_at), said == b"duplicate", tuple(map(bytes.decode, spoken_to)))

    send, asend = both(_send)

    async def _history(
        self,
        client: AnyRedis,
        user: str,
        *,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
        limit: int = 50,
    ) -> Page:
        """
        Return messages and events *before* or *after* a seq, both exclusive, or *around* it; the newest if none is
        given.

        Raises ValueError.
        """
        page = await self._read(client, check_person(user), before, after, limit, around)
        tally("chat:fetched", len(page.messages))
        return page

    history, ahistory = both(_history)

    async def _read(
        self,
        client: AnyRedis,
        user: str,
        before: int | None,
        after: int | None,
        limit: int,
        around: int | None = None,
    ) -> Page:
        """Return a page of the history that *user* may see; "" may see everything. Raises ValueError."""
        if sum(each is not None for each in (before, after, around)) > 1:
            raise ValueError("before, after and around: only one of them can be given.")
        found = await HISTORY.run(
            client,
            self._keys,
            person=user,
            before="" if before is None else check_seq("before", before),
            after="" if after is None else check_seq("after", after),
            around="" if around is None else check_seq("around", around),
            most=check_limit(limit),
            most_bytes=MAX_BYTES,
        )
        if not found:
            raise unknown(self.id)
        oldest, has_more, entries, has_newer = found
        messages = [read_message(self.id, entry) for entry in entries]
        return Page(messages, bool(has_more), int(oldest), bool(has_newer))

    async def _search(
        self, client: AnyRedis, user: str, words: str, *, before: int | None = None, limit: int = 20
    ) -> Found:
        """
        Find messages *before* a seq that have all the *words*, or words that begin with them.

        One call examines the last 2,000 messages and events before that seq, fewer if they are long or take long to
        compare. It may find nothing although there is more: *next* of the answer is the *before* with which to go on.

        Raises InvalidValue, ValueError.
        """
        return await self._find(client, check_person(user), Search(words), before, check_limit(limit))

    search, asearch = both(_search)

    async def _find(
        self, client: AnyRedis, user: str, search: Search, before: int | None, limit: int
    ) -> Found:
        """Search what *user* may see; "" may see everything."""
        found: list[ChatMessage] = []
        left = SECONDS
        for _ in range(SEARCHED):
            page = await self._read(client, user, before, None, MAX_LIMIT)
            before, left = await aside(client, _examine, page.messages, search, found, limit, left)
            is_over = not page.messages or before == page.messages[0].seq
            if is_over and not page.has_more:
                return Found(found, None)
            if len(found) == limit or left <= 0:
                break
        return Found(found, before)

    async def _message(self, client: AnyRedis, user: str, seq: int) -> ChatMessage:
        """Return the message or event with this seq. Raises MessageNotFound."""
        check_seq("seq", seq)
        page = await self._history(client, user, after=max(seq, 1) - 1, limit=1)
        if not page.messages or page.messages[0].seq != seq:
            absent = gettext("There is no message %(seq)s in the chat %(chat)r.")
            raise MessageNotFound(absent % {"seq": seq, "chat": self.id})
        return page.messages[0]

    message, amessage = both(_message)

    async def _edit(
        self,
        client: AnyRedis,
        sender: str,
        seq: int,
        text: str = "",
        *,
        data: Any = None,
        mentions: Sequence[str] = (),
    ) -> datetime:
        """
        Replace text, data and mentions of a message that *sender* has sent. Return when it was last edited.

        Members who have the message get it again. Nothing becomes unread, and only people who have not read the
        message are notified of a new mention. An edit counts towards the rate limit.

        Raises MessageNotFound, NotAllowed, ChatClosed, Muted, TooFast, InvalidMessage, ValueError.
        """
        body, size = write_body(text, data)
        said, *facts = await EDIT.run(
            client,
            self._keys,
            seq=check_seq("seq", seq),
            sender=check_person(sender),
            body=body,
            characters=len(text),
            data_bytes=size,
            call=new_call(),
            channel=self._channel,
            mentioned=_mentioned(mentions),
        )
        if said != b"edited":
            raise refusal(self.id, said, *facts)
        await self._trim_some(client)
        return from_ms(facts[0])

    edit, aedit = both(_edit)

    async def _react(self, client: AnyRedis, user: str, seq: int, emoji: str, *, is_on: bool = True) -> None:
        """
        Add a reaction of *user* to a message, or remove it if *is_on* is false. *emoji* is one of
        Unicode's emoji. It is stored with the variation selectors that Unicode names.

        Nothing becomes unread. A reaction counts towards the rate limit.

        Raises MessageNotFound, ChatClosed, Muted, TooFast, InvalidMessage, ValueError.
        """
        said, *facts = await REACT.run(
            client,
            self._keys,
            seq=check_seq("seq", seq),
            person=check_person(user),
            emoji=check_emoji(emoji, is_on),
            is_on=int(is_on),
            call=new_call(),
            channel=self._channel,
        )
        if said != b"done":
            raise refusal(self.id, said, *facts)
        await self._trim_some(client)

    react, areact = both(_react)

    async def _acknowledge(self, client: AnyRedis, user: str, seq: int) -> int:
        """Mark everything up to *seq* as read. Return the new reading position, which never moves back."""
        args = {"person": check_person(user), "wanted": check_seq("seq", seq)}
        position, is_due = await READ.run(
            client, self._keys, **args, channel=self._channel, most_told=READS_TOLD
        )
        if position < 0:
            raise unknown(self.id)
        if is_due:
            await self._trim_some(client)
        return int(position)

    acknowledge, aacknowledge = both(_acknowledge)

    async def _news(self, client: AnyRedis, user: str) -> ChatNews:
        """Return the state of the chat for a member, without messages."""
        check_person(user)
        if not is_id(self.id):
            raise unknown(self.id)
        keys, args = question(bucket(self.id), user, 0, [self.id, "last", ""])
        _now, found = await LOOK.acall(client, keys=keys, args=args)
        if found == 0:
            raise unknown(self.id)
        return read_news(self.id, found)

    news, anews = both(_news)

    # Members

    async def _members(self, client: AnyRedis, *, user: str | None = None) -> list[Member]:
        """
        Return the members: owners first, then moderators, then in the order in which they joined.

        Raises ChatNotFound unless *user*, if given, is one of them.
        """
        person = "" if user is None else check_person(user)
        tells = int(conf().chat_presence)
        found = await MEMBERS.run(client, self._keys, person=person, tells_presence=tells)
        if not found:
            raise unknown(self.id)
        return read_members(found)

    members, amembers = both(_members)

    async def _join(self, client: AnyRedis, user: str) -> None:
        """
        Join the chat; nothing changes for a member. Raises ChatNotFound unless the chat is open, Blocked, ChatClosed,
        TooManyMembers, TooManyChats, TooFast.
        """
        await self._add(client, [user], by=check_person(user))

    join, ajoin = both(_join)

    async def _add(self, client: AnyRedis, users: Sequence[str], *, by: str | None = None) -> list[str]:
        """
        Add people, and return those who were not members before.

        *by* must be an owner or moderator, unless the chat is open. The limits of the site apply to *by* and to the
        new members. Raises NotAllowed, Blocked, TooManyMembers, TooManyChats, TooFast; then nobody is added.
        """
        actor = check_actor(by)
        persons = list(dict.fromkeys(map(check_person, check_several("people", users))))
        new, out = await self._enter(client, actor, persons)
        if new and actor:
            await charge(client, actor, people=len(new))
            await check_room(client, self.id, new)
        while new:
            await write_hints(client, self.id, new, is_limited=bool(actor))
            entered, _out = await self._enter(client, actor, persons, after=out)
            if entered is not None:
                # If much time has passed since the hint was written, it may have been removed.
                await write_hints(client, self.id, entered)
                await self._trim_some(client)
                return entered
            # Somebody was removed meanwhile. If it was one of these people, in an erasure, their hint is gone.
            new, out = await self._enter(client, actor, persons)
        return []

    add, aadd = both(_add)

    async def _enter(
        self, client: AnyRedis, by: str, persons: Sequence[str], *, after: bytes = b""
    ) -> tuple[list[str] | None, bytes]:
        """
        Return the new members among *persons*, and when somebody was last removed. With *after*, add them to the
        chat. The list is None if somebody was removed after that.
        """
        said, *facts = await ENTER.run(
            client,
            self._keys,
            by=by,
            call=new_call(),
            is_done=int(bool(after)),
            known=after,
            channel=self._channel,
            inboxes=channel("inbox", ""),
            persons=[
                word for person in persons for word in (person, write_event(EventKind.JOINED, by, person))
            ],
        )
        if said == b"again":
            return None, b""
        if said != b"added":
            raise refusal(self.id, said, *facts)
        return [person.decode() for person in facts[1:]], facts[0]

    async def _leave(self, client: AnyRedis, user: str) -> None:
        """
        Leave the chat.

        When the last owner leaves, the first moderator becomes owner; without moderators, the first member does. The
        chat is deleted when its last member leaves.
        """
        await self._remove(client, user, user, EventKind.LEFT)

    leave, aleave = both(_leave)

    async def _kick(self, client: AnyRedis, user: str, *, by: str | None = None) -> None:
        """Remove a member. Raises NotAllowed unless the role of *by* is above theirs, NotAMember."""
        await self._remove(client, user, by, EventKind.KICKED)

    kick, akick = both(_kick)

    async def _block(self, client: AnyRedis, user: str, *, by: str | None = None) -> None:
        """Keep a person out of the chat until they are unblocked; a member is removed. Raises TooManyBlocked."""
        await self._remove(client, user, by, EventKind.BLOCKED)

    block, ablock = both(_block)

    async def _remove(self, client: AnyRedis, user: str, by: str | None, kind: EventKind) -> None:
        actor = check_actor(by)
        # Read before: a process that adds the person after their removal writes the hint with another score.
        hint = await hints_of(client, self.id, [check_person(user)])
        said = await self._let_out(client, user, actor, write_event(kind, actor, user), kind)
        if said not in (b"removed", b"traceless", b"blocked", b"nothing"):
            raise refusal(self.id, said)
        if said == b"removed":
            await forget_hints(client, user, [self.id], young=YOUNG_AFTER_LEAVING)
        if said in (b"removed", b"traceless"):
            await drop_hints(client, self.id, hint)
        if said != b"nothing":
            await self._trim_some(client)

    async def _let_out(self, client: AnyRedis, user: str, by: str, event: bytes, kind: str) -> bytes:
        said: bytes = await REMOVE.run(
            client,
            self._keys,
            id=self.id,
            person=user,
            by=by,
            call=new_call(),
            event=event,
            kind=kind,
            channel=self._channel,
            inbox=channel("inbox", user),
        )
        return said

    # Moderation

    async def _unblock(self, client: AnyRedis, user: str, *, by: str | None = None) -> None:
        """Allow a blocked person to join or to be added again."""
        event = write_event(EventKind.UNBLOCKED, check_actor(by), check_person(user))
        await self._do(client, UNBLOCK, by, event, person=user)

    unblock, aunblock = both(_unblock)

    async def _mute(
        self, client: AnyRedis, user: str, *, seconds: float | None = None, by: str | None = None
    ) -> None:
        """
        Mute a member of a lower role for this many *seconds*; None mutes them until they are unmuted.

        Raises NotAMember. A mute outlasts leaving and coming back.
        """
        length = -1 if seconds is None else round(check_seconds("time of a mute", seconds) * 1000)
        await self._set_muted(client, user, length, by, EventKind.MUTED)

    mute, amute = both(_mute)

    async def _unmute(self, client: AnyRedis, user: str, *, by: str | None = None) -> None:
        """Unmute a member, or a person who left while muted. Raises NotAMember for anybody else."""
        await self._set_muted(client, user, 0, by, EventKind.UNMUTED)

    unmute, aunmute = both(_unmute)

    async def _set_muted(
        self, client: AnyRedis, user: str, length: int, by: str | None, kind: EventKind
    ) -> None:
        event = write_event(kind, check_actor(by), check_person(user), detail=None)
        await self._do(client, MUTE, by, event, person=user, milliseconds=length)

    async def _set_role(
        self, client: AnyRedis, user: str, role: Role | str, *, by: str | None = None
    ) -> None:
        """Give a member a role, as owner. The only owner must stay owner. Raises NotAMember, ValueError."""
        actor, wanted = check_actor(by), Role(role)
        event = write_event(EventKind.ROLE, actor, check_person(user), wanted)
        await self._do(client, ROLE, by, event, person=user, letter=LETTERS[wanted])

    set_role, aset_role = both(_set_role)

    async def _delete_message(self, client: AnyRedis, seq: int, *, by: str | None = None) -> None:
        """
        Delete a message: one's own, or any as a moderator. An event informs clients that have it. Raises
        MessageNotFound.
        """
        event = write_event(EventKind.DELETED, check_actor(by), detail=str(check_seq("seq", seq)))
        await self._do(client, DELETE_MESSAGE, by, event, seq=check_seq("seq", seq))

    delete_message, adelete_message = both(_delete_message)

    async def _blocked(self, client: AnyRedis) -> dict[str, datetime]:
        """Return the blocked people, and since when they are blocked."""
        found = await idempotent(lambda: client.hgetall(self._keys.blocked))
        return {text_of(person): from_ms(number_of(since)) for person, since in found.items()}

    blocked, ablocked = both(_blocked)

    async def _muted(self, client: AnyRedis) -> dict[str, datetime]:
        """
        Return the people who left while they were muted, and when their mutes end.

        That instant may have passed.
        """
        found = await idempotent(lambda: client.zrange(self._keys.muted, 0, -1, withscores=True))
        return {
            text_of(person): from_ms(int(until)) if until < math.inf else datetime.max.replace(tzinfo=UTC)
            for person, until in found
        }

    muted, amuted = both(_muted)

    # The chat as a whole

    async def _rename(self, client: AnyRedis, title: str, *, by: str | None = None) -> None:
        """Give the chat another title, as owner or moderator. Raises InvalidMessage."""
        event = write_event(EventKind.RENAMED, check_actor(by), detail=check_title(title))
        await self._do(client, CHANGE, by, event, least="m", facts=["title", "*", title])

    rename, arename = both(_rename)

    async def _close(self, client: AnyRedis, *, by: str | None = None) -> None:
        """Close the chat, as owner: it can still be read, but not written to."""
        event = write_event(EventKind.CLOSED, check_actor(by))
        await self._do(client, CHANGE, by, event, least="o", facts=["closed", "*", "1"])

    close, aclose = both(_close)

    async def _reopen(self, client: AnyRedis, *, by: str | None = None) -> None:
        """Open a closed chat, as owner."""
        event = write_event(EventKind.REOPENED, check_actor(by))
        await self._do(client, CHANGE, by, event, least="o", facts=["closed", "*", "0"])

    reopen, areopen = both(_reopen)

    async def _configure(self, client: AnyRedis, /, *, by: str | None = None, **settings: Any) -> None:
        """Change some of ChatSettings, as owner. Raises TypeError, InvalidValue."""
        event = write_event(EventKind.CONFIGURED, check_actor(by))
        replace(USUAL, **settings)  # raises TypeError for an unknown setting
        said = b"other"
        while said == b"other":  # somebody configures it at the same moment
            found = await idempotent(lambda: client.hmget(self._keys.chat, ["created_at", *settings]))
            if found[0] is None:
                raise unknown(self.id)
            facts: list[Any] = []
            for (name, value), before in zip(settings.items(), found[1:], strict=True):
                check_setting(name, value)
                facts += [name, before or b"", write_setting(name, value)]
            # Trimmed first, because afterwards nothing shows what the old settings would have removed.
            await self._trim_all(client)
            said = await self._do(client, CHANGE, by, event, least="o", facts=facts)
        await self._trim_all(client)

    configure, aconfigure = both(_configure)

    async def _trim(self, client: AnyRedis, *, before: int) -> int:
        """Remove everything before this seq, as the system. Return how many messages and events were removed."""
        keys = self._keys
        if not await idempotent(lambda: client.hexists(keys.chat, "created_at")):
            raise unknown(self.id)
        return await self._trim_all(client, before=max(check_seq("before", before) - 1, 0))

    trim, atrim = both(_trim)

    async def _info(self, client: AnyRedis) -> ChatInfo:
        """Return the state of the chat, for the system."""
        check_known(self.id)
        [info] = await look_at(client, [self.id])
        if info is None:
            raise unknown(self.id)
        return info

    info, ainfo = both(_info)

    async def _delete(self, client: AnyRedis) -> None:
        """
        Delete the chat, as the system.

        A new chat with the same id continues the sequence if created within a year.
        """
        keys = self._keys
        members = await idempotent(lambda: client.zrange(keys.reads, 0, -1))
        hints = await hints_of(client, self.id, [*map(text_of, members)])
        await DELETE.run(client, keys, id=self.id, channel=self._channel, inboxes=channel("inbox", ""))
        await drop_hints(client, self.id, hints)

    delete, adelete = both(_delete)

    async def _do(self, client: AnyRedis, script: Script, by: str | None, event: bytes, **args: Any) -> bytes:
        """Run a script that appends an event, and return its answer. Raises the error for its refusal."""
        said: bytes = await script.run(
            client,
            self._keys,
            by=check_actor(by),
            call=new_call(),
            event=event,
            channel=self._channel,
            **args,
        )
        if said not in (b"done", b"nothing", b"other"):
            raise refusal(self.id, said)
        if said == b"done":
            await self._trim_some(client)
        return said

    async def _trim_all(self, client: AnyRedis, *, before: int = 0) -> int:
        """
        Remove entries beyond the limits of the chat, or all up to *before*. Return how many entries were removed.
        """
        gone, more = 0, True
        while more:
            went, more = await self._trim_some(client, before=before)
            gone += went
        return gone

    async def _trim_some(self, client: AnyRedis, *, before: int = 0) -> tuple[int, bool]:
        """Remove some of these entries. Return how many were removed, and whether there are more."""
        went, more = await TRIM.run(
            client, self._keys, before=before, call=new_call(), most=TRIMMED, channel=self._channel
        )
        return int(went), bool(more)

    @property
    def _keys(self) -> ChatKeys:
        """Return the keys of the chat. Raises ChatNotFound for an impossible id."""
        return ChatKeys(check_known(self.id))  # built at each use, because the key prefix is a setting

    @property
    def _channel(self) -> str:
        return channel("chat", self.id)


@lru_cache(maxsize=1_024)
def _keys_of_send(chat_id: str, first: str) -> list[str]:
    """
    Return the keys of send.lua. *first* is one of them: it makes the cache follow the prefix, which is a setting.
    """
    return SEND.contract.keys_of(ChatKeys(chat_id), {})


def question(tag: str, person: str, limit: int, asked: Sequence[Any], most_bytes: int = MAX_BYTES) -> Any:
    """Return a call of look.lua for chats of a bucket. *asked* has the id, seq and revision of each."""
    return LOOK.call(
        ChatKeys.of_bucket(tag),
        person=person,
        most=limit,
        most_bytes=most_bytes,
        most_told=READS_TOLD,
        questions=asked,
    )


def _mentioned(mentions: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(map(check_person, check_several("mentions", mentions))))


async def look_at(client: AnyRedis, chat_ids: Sequence[str]) -> list[ChatInfo | None]:
    """Return the state of these chats, in one round trip; None for each that does not exist."""
    answers = iter(await pipelined(client, chat_ids, _add_chat))
    four = zip(*[answers] * 4, strict=True)
    return [_read_info(chat_id, *each) for chat_id, each in zip(chat_ids, four, strict=True)]


def _add_chat(pipe: Any, chat_id: str) -> None:
    keys = ChatKeys(chat_id)
    pipe.hmget(keys.chat, [*_FACTS, *SETTINGS])
    pipe.xlen(keys.messages)
    pipe.hlen(keys.members)
    pipe.xrange(keys.messages, count=1)


def _read_info(
    chat_id: str, head: list[bytes | None], messages: int, members: int, first: list[Any]
) -> ChatInfo | None:
    its = dict(zip([*_FACTS, *SETTINGS], head, strict=True))
    if its["seq"] is None or its["gone"]:
        return None
    try:
        settings = read_settings({name: its[name] for name in SETTINGS})
        created_at, last_at, is_unreadable = from_ms(its["created_at"] or 0), from_ms(its["at"] or 0), False
        last_seq, size, said = int(its["seq"]), int(its["bytes"] or 0), int(its["n"] or 0)
    except (ValueError, OverflowError):
        settings, created_at, last_at, is_unreadable = USUAL, EPOCH, EPOCH, True
        last_seq, size, said = number_of(its["seq"]), number_of(its["bytes"]), number_of(its["n"])
    return ChatInfo(
        id=chat_id,
        title=text_of(its["title"] or b""),
        created_at=created_at,
        created_by=text_of(its["created_by"] or b""),
        is_closed=its["closed"] == b"1",
        settings=settings,
        last_seq=last_seq,
        first_seq=int(first[0][0].partition(b"-")[0]) if first else last_seq + 1,
        messages=messages,
        bytes=size if messages else 0,
        members=members,
        last_at=last_at if said else None,
        is_unreadable=is_unreadable,
    )


def _examine(
    messages: Sequence[ChatMessage], search: Search, found: list[ChatMessage], limit: int, seconds: float
) -> tuple[int | None, float]:
    """
    Append what *search* finds among *messages*, from their end, to *found*, until it has *limit* or the *seconds* of
    the processor are over. Return the seq of the last message examined, and the seconds that are left.
    """
    seq, until = None, thread_time() + seconds
    for message in reversed(messages):
        seq = message.seq
        if not message.event and not message.is_unreadable and search.finds(message.text):
            found.append(message)
        if len(found) == limit or thread_time() > until:
            break
    return seq, until - thread_time()


def check_seq(what: str, seq: object) -> int:
    """Return *seq* if it is valid, at most the greatest possible seq. Raises ValueError."""
    return min(check_int(what, seq, 0), _LAST)


def check_limit(limit: object) -> int:
    """Return *limit* if it is a valid number of messages. Raises ValueError."""
    return check_int("limit", limit, 1, MAX_LIMIT)


def check_known(chat_id: object) -> str:
    """Return *chat_id*. Raises ChatNotFound if it is an impossible id."""
    if isinstance(chat_id, str) and is_id(chat_id):
        return chat_id
    raise unknown(chat_id)


def refusal(chat_id: str, said: bytes, *why: Any) -> ComponentsError:
    """Return the error for the refusal of a script. People who chat read its text."""
    chat = {"chat": chat_id}
    match said:
        case b"reused":
            return reused()
        case b"closed":
            return ChatClosed(gettext("The chat %(chat)r is closed.") % chat)
        case b"denied":
            return NotAllowed(gettext("The role in the chat %(chat)r does not include this.") % chat)
        case b"last":
            only = gettext("This is the only owner of the chat %(chat)r. Make someone else an owner first.")
            return NotAllowed(only % chat)
        case b"absent":
            return NotAMember(gettext("The person is not in the chat %(chat)r.") % chat)
        case b"nowhere":
            return MessageNotFound(gettext("There is no such message in the chat %(chat)r.") % chat)
        case b"blocked":
            blocked = gettext("%(user)r is blocked in the chat %(chat)r.")
            return Blocked(blocked % {**chat, "user": why[0].decode()})
        case b"crowded":
            crowded = gettext(
                "The chat %(chat)r blocks %(most)s persons, which is the limit. Unblock others first."
            )
            return TooManyBlocked(crowded % {**chat, "most": grouped(10_000)})
        case b"full":
            full = gettext("The chat %(chat)r takes %(most)s members at most.")
            return TooManyMembers(full % {**chat, "most": grouped(why[0])})
        case b"muted":
            if why[0] < 0:
                return Muted(
                    gettext("The person is muted in the chat %(chat)r until they are unmuted.") % chat
                )
            muted = gettext("The person is muted in the chat %(chat)r until %(time)s.")
            return Muted(muted % {**chat, "time": from_ms(why[0]).isoformat()})
        case b"long":
            long = gettext(
                "The message is too long: the chat %(chat)r takes texts of up to %(characters)s characters and data "
                "of up to %(bytes)s bytes."
            )
            return InvalidMessage(long % {**chat, "characters": grouped(why[0]), "bytes": grouped(why[1])})
        case b"many":
            many = gettext(
                "The message has too many reactions: the chat %(chat)r takes %(most)s of them, and %(kinds)s "
                "different ones."
            )
            return InvalidMessage(many % {**chat, "most": grouped(why[0]), "kinds": why[1]})
        case b"fast":
            seconds = why[0] / 1000
            fast = gettext("The person sends to the chat %(chat)r too fast. Try again in %(seconds)s s.")
            return TooFast(fast % {**chat, "seconds": f"{seconds:g}"}, seconds)
    return unknown(chat_id)


def unknown(chat_id: object) -> ChatNotFound:
    absent = gettext("There is no chat %(chat)s, or the person is not in it.")
    return ChatNotFound(absent % {"chat": repr(chat_id)[:80]})
