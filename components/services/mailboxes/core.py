"""
What the methods of a Mailbox and their twins have in common: the requests, and what the answers say.

A message is an entry of a stream, so the oldest and the newest are at its ends, and its size is a memory of its own.
What was handed out is in a sorted set beside it until it is acknowledged: only that goes, so a recipient that pulled
the newest loses none of the older ones. Each call that changes something has a random name, under which a script
that is sent again, its reply being lost, gives the same answer. Nothing happens by itself when a process dies.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from components.exceptions import Blocked, InvalidLimit, MailboxFull, MessageNotFound, TooManyBlocked
from components.kit.buckets import bucket
from components.kit.client import AnyRedis
from components.kit.news import channel
from components.kit.scripts import Script, reading
from components.kit.stored import UNREADABLE, number_of, text_of
from components.kit.values import check_name
from components.services.counters import tally
from components.services.mailboxes import keys
from components.services.mailboxes.formats import check_client_id, decode, digest, encode
from components.services.mailboxes.records import Delivery, Fate, Mail, Mails, Pushed, WhenFull

MAX_LIMIT = 100_000  # messages in a mailbox: one script may have to acknowledge them all
MAX_BLOCKED = 10_000  # senders whose mail one mailbox refuses
MAX_ID = 2**53 - 1  # up to here Lua, JSON and scores count exactly

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_block = Script("mailboxes/block")
_clear = Script("mailboxes/clear")
_erase = Script("mailboxes/erase")
_peek = Script("mailboxes/peek")
_pull = Script("mailboxes/pull")
_push = Script("mailboxes/push")
_status = Script("mailboxes/status")


class Keys:
    """The keys of one mailbox, for each script."""

    def __init__(self, name: str) -> None:
        tag = bucket(name)
        self.mailbox, self.messages = keys.mailbox(tag, name), keys.mailbox_messages(tag, name)
        self.handed, self.blocked = keys.mailbox_handed(tag, name), keys.mailbox_blocked(tag, name)
        dropped, sent, names = (
            keys.mailbox_dropped(tag, name),
            keys.mailbox_sent(tag, name),
            keys.mailbox_names(tag),
        )
        shared = [self.mailbox, self.messages, self.handed]
        self.push = self.erase = [*shared, dropped, sent, self.blocked, names]
        self.pull = [*shared, sent, names]
        self.status = self.clear = [*shared, dropped, sent]
        self.peek = [self.messages, self.handed]


class Core:
    """The mailbox *name*, with at most *limit* messages."""

    def __init__(
        self,
        name: str,
        *,
        limit: int = 1_000,
        when_full: WhenFull = "refuse",
        max_text: int = 4_000,
        max_data: int = 8_192,
    ) -> None:
        self.name = check_name("mailbox", name)
        self.limit = check_limit(limit)
        if when_full not in ("refuse", "drop_oldest"):
            raise ValueError(f'when_full is {when_full!r}; it must be "refuse" or "drop_oldest".')
        self.when_full = when_full
        self.max_text, self.max_data = max_text, max_data

    @property
    def _keys(self) -> Keys:
        return Keys(self.name)  # the prefix is a setting, which is read when it is used

    @property
    def _channel(self) -> str:
        return channel("mailbox", self.name)

    async def _push(
        self, client: AnyRedis, sender: str, text: str, data: Any, client_id: str | None
    ) -> Pushed:
        check_name("person", sender)
        body = encode(text, data, max_text=self.max_text, max_data=self.max_data)
        known_by = digest(sender, new_call() if client_id is None else check_client_id(client_id))
        call = new_call()
        args = [self.name, sender, known_by, call, body, self.limit, self.when_full, self._channel]
        said, fact = await _push.acall(client, keys=self._keys.push, args=args)
        if said == b"blocked":
            raise Blocked(f"The mailbox {self.name!r} takes no mail from {sender!r}.")
        if said == b"full":
            raise MailboxFull(f"The mailbox {self.name!r} is full: it has {fact:,} messages.")
        message, sent_at, by, *dropped = fact.decode().split()
        is_duplicate = by != call
        if not is_duplicate:
            tally("mailboxes:pushed")
        return Pushed(
            int(message), instant(sent_at), is_duplicate, () if is_duplicate else tuple(map(int, dropped))
        )

    async def _pull(self, client: AnyRedis, limit: int | None, after: int, newest: bool, call: str) -> Mails:
        which = "newest" if newest else "oldest"
        args = [self.name, after, MAX_LIMIT if limit is None else limit, which, call]
        acknowledged, missed, *rows = await _pull.acall(client, keys=self._keys.pull, args=args)
        tally("mailboxes:pulled", len(rows))
        tally("mailboxes:acknowledged", acknowledged)
        return Mails((read_mail(*row) for row in rows), missed=missed)

    async def _peek(self, client: AnyRedis, limit: int | None, newest: bool) -> list[Mail]:
        return await peek(client, self.name, 0, check_pulled(limit), newest=newest)

    async def _acknowledge(self, client: AnyRedis, message: int) -> int:
        args = [self.name, check_id(message), 0, "oldest", new_call()]
        acknowledged, *_ = await _pull.acall(client, keys=self._keys.pull, args=args)
        tally("mailboxes:acknowledged", acknowledged)
        return int(acknowledged)

    async def _status(self, client: AnyRedis, message: int, sender: str | None) -> Delivery:
        asking = "" if sender is None else check_name("person", sender)
        fate, pulled_at = await _status.acall(
            client, keys=self._keys.status, args=[check_id(message), asking]
        )
        if not fate:
            by = "" if sender is None else f" from {sender!r}"
            raise MessageNotFound(f"The mailbox {self.name!r} knows of no message {message}{by}.")
        return Delivery(message, Fate(fate.decode()), instant_or_none(pulled_at))

    async def _depth(self, client: AnyRedis) -> int:
        return int(await reading(lambda: client.xlen(self._keys.messages)))

    async def _missed(self, client: AnyRedis) -> int:
        dropped, known = await reading(lambda: client.hmget(self._keys.mailbox, ["dropped", "known"]))
        return max(0, number_of(dropped) - number_of(known))

    async def _block(self, client: AnyRedis, sender: str) -> None:
        args = [check_name("person", sender), MAX_BLOCKED]
        if not await _block.acall(client, keys=[self._keys.blocked], args=args):
            raise TooManyBlocked(
                f"The mailbox {self.name!r} refuses the mail of {MAX_BLOCKED:,} senders already. Unblock some."
            )

    async def _unblock(self, client: AnyRedis, sender: str) -> None:
        who = check_name("person", sender)
        await reading(lambda: client.hdel(self._keys.blocked, who))  # twice is as once

    async def _blocked(self, client: AnyRedis) -> dict[str, datetime]:
        found = await reading(lambda: client.hgetall(self._keys.blocked))
        return {text_of(who): instant_or_none(since) or _EPOCH for who, since in sorted(found.items())}

    async def _clear(self, client: AnyRedis) -> int:
        return int(await _clear.acall(client, keys=self._keys.clear, args=[new_call()]))

    async def _erase(self, client: AnyRedis) -> None:
        await _erase.acall(client, keys=self._keys.erase, args=[self.name])


async def peek(
    client: AnyRedis, name: str, first: int, limit: int | None, *, newest: bool = False
) -> list[Mail]:
    """Messages of a mailbox from the id *first* on, without handing them out."""
    which = "newest" if newest else "oldest"
    args = [first, MAX_LIMIT if limit is None else limit, which]
    return [read_mail(*row) for row in await _peek.acall(client, keys=Keys(name).peek, args=args)]


def read_mail(message: bytes, is_again: int, sender: bytes, sent_at: bytes, body: bytes) -> Mail:
    """Return a message from what pull.lua and peek.lua tell of it; what cannot be read becomes a placeholder."""
    try:
        text, data = decode(body)
        return Mail(int(message), sender.decode(), text, data, instant(sent_at), bool(is_again))
    except (ValueError, OverflowError):
        at = instant_or_none(sent_at) or _EPOCH
        return Mail(int(message), text_of(sender), UNREADABLE, None, at, bool(is_again), is_unreadable=True)


def instant(milliseconds: bytes | str) -> datetime:
    return _EPOCH + timedelta(milliseconds=int(milliseconds))


def instant_or_none(milliseconds: bytes | str | None) -> datetime | None:
    """Return the instant, or None if there is none or it cannot be read."""
    try:
        return instant(milliseconds) if milliseconds else None
    except (ValueError, OverflowError):
        return None


def new_call() -> str:
    """A name that no other call has."""
    return secrets.token_hex(8)


def check_pulled(limit: int | None) -> int | None:
    """*limit*, if so many can be pulled; None is all. Raises InvalidLimit."""
    return None if limit is None else check_limit(limit)


def check_limit(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_LIMIT:
        raise InvalidLimit(f"The limit is {value!r}; it must be a whole number, 1 to {MAX_LIMIT:,}.")
    return value


def check_id(message: object) -> int:
    """*message*, if it can be an id. Raises ValueError."""
    if isinstance(message, bool) or not isinstance(message, int) or not 0 <= message <= MAX_ID:
        raise ValueError(f"The id of a message is {message!r}; it must be a whole number, 0 to 2^53 - 1.")
    return message
