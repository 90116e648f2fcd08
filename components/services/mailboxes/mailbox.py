"""
Mailbox: messages for one recipient, who pulls them when they have time (chapter 6.5.1 of the book).

The messages are a stream. Messages that were handed out are listed in a sorted set until they are acknowledged. Until
then, each pull returns them again, so no message is lost with the process that pulled it. Each call that changes
something has a random id: if its reply is lost, the script is sent again and returns the same. A process that dies
needs no cleanup.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha1
from typing import Any

from components.exceptions import Blocked, InvalidMessage, MailboxFull, MessageNotFound, TooManyBlocked
from components.kit.bodies import read_body, write_body
from components.kit.buckets import Index
from components.kit.client import SHORTEST_BLOCK, AnyRedis, get_async_client, get_client, longest_block
from components.kit.decoding import EPOCH, UNREADABLE, from_ms, from_ms_or_none, number_of, text_of
from components.kit.errors import ended_early, redis_errors
from components.kit.ids import new_call, reused
from components.kit.leases import clock
from components.kit.pubsub import Listener, channel
from components.kit.scripts import Script, idempotent, pipelined
from components.kit.sync_async import at_once, both
from components.kit.translation import gettext, grouped
from components.kit.validation import check_int, check_name, check_seconds, is_name
from components.services.counters import tally
from components.services.mailboxes.facts import Delivery, Fate, Mail, MailboxInfo, Mails, Pushed, WhenFull
from components.services.mailboxes.keys import MailboxKeys, index

MAX_LIMIT = 100_000  # messages in a mailbox: one script may have to acknowledge them all
MAX_BLOCKED = 10_000  # senders whose mail one mailbox refuses
MAX_ID = 2**53 - 1  # the largest integer that Lua, JSON and scores represent exactly
MAX_CLIENT_ID = 64  # characters
_DIGITS = 16  # length of a digest: enough to distinguish all pushes of two days
#: The fields of the mailbox's HASH.
FIGURES = ("pulled_at", "pushed", "acknowledged", "dropped", "limit")

BLOCK = Script("mailboxes/block")
CLEAR = Script("mailboxes/clear")
ERASE = Script("mailboxes/erase")
PEEK = Script("mailboxes/peek")
PULL = Script("mailboxes/pull")
PUSH = Script("mailboxes/push")
STATUS = Script("mailboxes/status")


class Mailbox:
    """
    The mailbox of the recipient *name*, with at most *limit* messages.

    A push to a full mailbox is refused, or drops the oldest message. Only senders need to agree on *limit* and
    *when_full*. Raises InvalidName, InvalidValue, ValueError. Every method raises RedisUnavailable.
    """

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

    async def _push(
        self, client: AnyRedis, sender: str, text: str = "", *, data: Any = None, client_id: str | None = None
    ) -> Pushed:
        """
        Put a message of *sender* into the mailbox: a text, JSON data, or both.

        If the same sender pushes again with the same *client_id* within a day, the message is stored only once.
        Raises MailboxFull, Blocked, InvalidMessage, InvalidName.
        """
        check_name("person", sender)
        body, size = write_body(text, data)
        if len(text) > self.max_text:
            long = gettext("The text has %(count)s characters; a message takes %(most)s at most.")
            raise InvalidMessage(long % {"count": grouped(len(text)), "most": grouped(self.max_text)})
        if size > self.max_data:
            raise InvalidMessage(
                f"The data are {size:,} bytes of JSON; a message takes {self.max_data:,} at most."
            )
        call = new_call()
        said, *facts = await PUSH.run(
            client,
            self._keys,
            name=self.name,
            sender=sender,
            digest=_digest(sender, new_call() if client_id is None else _check_client_id(client_id)),
            call=call,
            body=body,
            limit=self.limit,
            when_full=self.when_full,
            channel=self._channel,
        )
        if said == b"blocked":
            refused = gettext("The mailbox %(mailbox)r takes no mail from %(sender)r.")
            raise Blocked(refused % {"mailbox": self.name, "sender": sender})
        if said == b"full":
            full = gettext("The mailbox %(mailbox)r is full: it has %(count)s messages.")
            count = grouped(facts[0])
            raise MailboxFull(full % {"mailbox": self.name, "count": count})
        if said == b"reused":
            raise reused()
        by, message, sent_at, *more = facts[0].split()
        if by.decode() != call:
            return Pushed(int(message), from_ms(sent_at), is_duplicate=True)
        tally("mailboxes:pushed")
        return Pushed(int(message), from_ms(sent_at), is_duplicate=False, dropped=tuple(map(int, more[1:])))

    push, apush = both(_push)

    def pull(
        self, limit: int | None = 10, *, after: int | None = None, newest: bool = False, wait: float = 0.0
    ) -> Mails:
        """
        Return up to *limit* messages (None: all), the oldest or the *newest*, in order of arrival.

        With *after*, acknowledge up to that id first, as acknowledge() does, in the same step. A call that is
        repeated with it acknowledges nothing more. If there is no message, wait up to *wait* seconds for one.
        Raises InvalidValue, ValueError.
        """
        request = self._request(limit, after, newest, wait)
        client, until = get_client(), clock() + wait
        mails = at_once(self._pull(client, request))
        while not mails and (left := until - clock()) > 0:
            block = max(SHORTEST_BLOCK, min(left, longest_block(client)))
            with redis_errors(), ended_early():
                client.xread({self._keys.messages: 0}, count=1, block=round(block * 1000))
            mails = at_once(self._pull(client, request))
        return mails

    async def apull(
        self, limit: int | None = 10, *, after: int | None = None, newest: bool = False, wait: float = 0.0
    ) -> Mails:
        """Return up to *limit* messages, as pull() does. All waiting calls of an event loop share one connection."""
        request = self._request(limit, after, newest, wait)
        client, until = get_async_client(), clock() + wait
        if wait == 0:
            return await self._pull(client, request)
        async with Listener.of_the_loop().interest([self._channel]) as interest:
            while True:
                mails = await self._pull(client, request)
                left = until - clock()
                if mails or left <= 0:
                    return mails
                await interest.wait(left)

    def _request(self, limit: int | None, after: int | None, newest: bool, wait: float) -> dict[str, Any]:
        """Return the arguments of pull.lua, by which a repeated call knows what it has handed out itself."""
        check_seconds("wait", wait, may_be_zero=True)
        return {
            "upto": 0 if after is None else _check_id(after),
            "limit": check_pulled(limit),
            "which": "newest" if newest else "oldest",
            "call": new_call(),
        }

    async def _pull(self, client: AnyRedis, request: dict[str, Any]) -> Mails:
        acknowledged, missed, *rows = await PULL.run(client, self._keys, name=self.name, **request)
        tally("mailboxes:pulled", len(rows))
        tally("mailboxes:acknowledged", acknowledged)
        return Mails((_read(*row) for row in rows), missed=missed)

    async def _peek(self, client: AnyRedis, limit: int | None = 10, *, newest: bool = False) -> list[Mail]:
        """Return messages, as pull() does, without handing them out. Raises InvalidValue."""
        return await peek(client, self.name, first=0, limit=limit, newest=newest)

    peek, apeek = both(_peek)

    async def _acknowledge(self, client: AnyRedis, id: int) -> int:
        """
        Remove the message *id* and those before it that were handed out no later. Return how many were removed.

        Others stay, and so do all if *id* is not among those handed out. Raises ValueError if it is not a valid id.
        """
        request = {"upto": _check_id(id), "limit": 0, "which": "oldest", "call": new_call()}
        acknowledged, *_ = await PULL.run(client, self._keys, name=self.name, **request)
        tally("mailboxes:acknowledged", acknowledged)
        return int(acknowledged)

    acknowledge, aacknowledge = both(_acknowledge)

    async def _status(self, client: AnyRedis, id: int, *, sender: str | None = None) -> Delivery:
        """
        Return the fate of a message, and when its recipient last pulled.

        With *sender*, only if they sent it, which is known while the message is in the mailbox and for a day after.
        Raises MessageNotFound, also if it was dropped too long ago; ValueError.
        """
        asking = "" if sender is None else check_name("person", sender)
        fate, pulled_at = await STATUS.run(client, self._keys, id=_check_id(id), asking=asking)
        if not fate:
            absent = gettext("The mailbox %(mailbox)r has no message %(id)s.")
            if sender is not None:
                absent = gettext("The mailbox %(mailbox)r has no message %(id)s from %(sender)r.")
            raise MessageNotFound(absent % {"mailbox": self.name, "id": id, "sender": sender})
        return Delivery(id, Fate(fate.decode()), from_ms_or_none(pulled_at))

    status, astatus = both(_status)

    async def _depth(self, client: AnyRedis) -> int:
        """Return how many messages the mailbox has, handed out or not."""
        return int(await idempotent(lambda: client.xlen(self._keys.messages)))

    depth, adepth = both(_depth)

    async def _missed(self, client: AnyRedis) -> int:
        """Return the number of dropped messages that the recipient does not know of, as Mails.missed does."""
        dropped, known = await idempotent(lambda: client.hmget(self._keys.mailbox, ["dropped", "known"]))
        return max(0, number_of(dropped) - number_of(known))

    missed, amissed = both(_missed)

    async def _info(self, client: AnyRedis) -> MailboxInfo:
        """Return the state of the mailbox."""
        return (await look(client, [self.name]))[0]

    info, ainfo = both(_info)

    async def _block(self, client: AnyRedis, sender: str) -> None:
        """Refuse the mail of *sender* from now on. Their messages in the mailbox stay. Raises TooManyBlocked."""
        sender = check_name("person", sender)
        if not await BLOCK.run(client, self._keys, sender=sender, most=MAX_BLOCKED):
            many = gettext(
                "The mailbox %(mailbox)r refuses the mail of %(most)s senders already. Unblock some."
            )
            most = grouped(MAX_BLOCKED)
            raise TooManyBlocked(many % {"mailbox": self.name, "most": most})

    block, ablock = both(_block)

    async def _unblock(self, client: AnyRedis, sender: str) -> None:
        """Accept the mail of *sender* again."""
        who = check_name("person", sender)
        await idempotent(lambda: client.hdel(self._keys.blocked, who))  # safe to repeat

    unblock, aunblock = both(_unblock)

    async def _blocked(self, client: AnyRedis) -> dict[str, datetime]:
        """Return the senders whose mail is refused, and since when."""
        found = await idempotent(lambda: client.hgetall(self._keys.blocked))
        return {text_of(who): from_ms_or_none(since) or EPOCH for who, since in sorted(found.items())}

    blocked, ablocked = both(_blocked)

    async def _clear(self, client: AnyRedis) -> int:
        """Drop all messages, and return how many. Senders and the recipient can see that they were dropped."""
        return int(await CLEAR.run(client, self._keys, call=new_call()))

    clear, aclear = both(_clear)

    async def _erase(self, client: AnyRedis) -> None:
        """Remove the mailbox and everything stored about it. Messages that its owner sent to others stay."""
        await ERASE.run(client, self._keys, name=self.name)

    erase, aerase = both(_erase)

    @property
    def _keys(self) -> MailboxKeys:
        return MailboxKeys(self.name)  # built at each use, because the key prefix is a setting

    @property
    def _channel(self) -> str:
        return channel("mailbox", self.name)


_ALL = Index(index)


class MailboxReader:
    """
    The list of mailboxes that were used within a year. Every method raises RedisUnavailable.

    Each bucket has an index of names. A page takes three round trips, however many mailboxes there are: for the sizes
    of all buckets, for the names in the buckets that it shows, and for the figures of these mailboxes.
    """

    def count(self) -> int:
        """Return how many mailboxes there are."""
        return sum(_ALL.sizes())

    def page(self, *, offset: int = 0, limit: int = 50) -> list[MailboxInfo]:
        """
        Return a page of the mailboxes, ordered by name within each bucket, from the *offset*-th on.

        Using a mailbox may move it to another page, at most once a day.
        """
        return at_once(look(get_client(), sorted(_ALL.page(offset, limit))))

    def find(self, name: str) -> MailboxInfo | None:
        """Return the mailbox with this name; None if it was never used, or not within a year."""
        [info] = at_once(look(get_client(), [name]))
        return info if info.pushed or info.pulled_at else None

    def messages(self, name: str, *, first: int = 0, limit: int = 50) -> list[Mail]:
        """Return a page of the messages of a mailbox, from the id *first* on, without handing them out."""
        return at_once(peek(get_client(), name, first=first, limit=check_limit(limit)))


async def peek(
    client: AnyRedis, name: str, *, first: int, limit: int | None, newest: bool = False
) -> list[Mail]:
    """Return messages of a mailbox from the id *first* on, without handing them out."""
    which = "newest" if newest else "oldest"
    rows = await PEEK.run(client, MailboxKeys(name), first=first, limit=check_pulled(limit), which=which)
    return [_read(*row) for row in rows]


async def look(client: AnyRedis, names: Sequence[str]) -> list[MailboxInfo]:
    """Return the state of these mailboxes, in one round trip to each node."""

    def add(pipe: Any, name: str) -> None:
        keys = MailboxKeys(name)
        pipe.xlen(keys.messages)
        pipe.zcard(keys.handed)
        pipe.memory_usage(keys.messages)
        pipe.xrange(keys.messages, count=1)
        pipe.hmget(keys.mailbox, FIGURES)

    found = iter(await pipelined(client, names, add, without_right=True))
    return [_info(name, *five) for name, five in zip(names, zip(*[found] * 5, strict=True), strict=True)]


def _info(
    name: str, depth: int, handed_out: int, size: int | None, oldest: list[Any], figures: list[bytes | None]
) -> MailboxInfo:
    pulled_at, pushed, acknowledged, dropped, limit = figures
    return MailboxInfo(
        name=name,
        depth=depth,
        handed_out=handed_out,
        bytes=size if size or depth else 0,
        oldest_at=from_ms_or_none(oldest[0][1].get(b"at")) if oldest else None,
        pulled_at=from_ms_or_none(pulled_at),
        pushed=number_of(pushed),
        acknowledged=number_of(acknowledged),
        dropped=number_of(dropped),
        limit=number_of(limit) or None,
    )


def _read(message: bytes, is_again: int, sender: bytes, sent_at: bytes, body: bytes) -> Mail:
    """Return a message from the answer of a script. An unreadable message becomes a placeholder."""
    try:
        text, data = read_body(body)
        return Mail(int(message), sender.decode(), text, data, from_ms(sent_at), bool(is_again))
    except (ValueError, OverflowError):
        at = from_ms_or_none(sent_at) or EPOCH
        text = gettext(UNREADABLE)
        return Mail(int(message), text_of(sender), text, None, at, bool(is_again), is_unreadable=True)


def _digest(sender: str, client_id: str) -> str:
    """Return a digest by which a repeated push is recognised."""
    text = f"{len(sender)}:{sender}{client_id}"
    return sha1(text.encode(), usedforsecurity=False).hexdigest()[:_DIGITS]


def _check_client_id(client_id: str) -> str:
    if is_name(client_id) and len(client_id) <= MAX_CLIENT_ID and "\0" not in client_id:
        return client_id
    raise InvalidMessage(
        f"The client id is {repr(client_id)[:80]}; it must be 1 to {MAX_CLIENT_ID} characters, without a NUL."
    )


def check_limit(value: object) -> int:
    return check_int("limit", value, 1, MAX_LIMIT)


def check_pulled(limit: int | None) -> int:
    """Return the limit to pass to the script; None means all. Raises InvalidValue."""
    return MAX_LIMIT if limit is None else check_limit(limit)


def _check_id(message: object) -> int:
    return check_int("id of a message", message, 0, MAX_ID)
