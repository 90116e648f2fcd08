"""
ChatReader: all chats, by page, for the control room; and what is told about a chat to those who look after it.

The ids lie in an index for each bucket. A page asks all buckets for their sizes, those that it shows for their ids,
and these chats for themselves: three round trips, whatever the number of chats. Nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from components.kit.at_once import at_once
from components.kit.buckets import BUCKETS
from components.kit.client import AnyRedis, get_client
from components.kit.scripts import reading
from components.kit.stored import number_of, text_of
from components.services.chat import core
from components.services.chat.formats import instant, read_settings
from components.services.chat.ids import is_id
from components.services.chat.keys import index
from components.services.chat.records import ChatInfo, ChatSettings, Page
from components.services.chat.talking import history_of

_FIELDS = ("title", "created_at", "created_by", "closed", "settings", "seq", "bytes", "at", "gone", "n")


class ChatReader:
    """What the control room asks. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """How many chats there are."""
        return sum(at_once(_sizes(get_client())))

    def page(self, *, offset: int = 0, limit: int = 50) -> list[ChatInfo]:
        """
        Some of them, from the *offset*-th on, in which something was said last before the others. Pages go through
        one bucket after another; what happens moves chats to other pages.
        """
        return at_once(self._page(get_client(), offset, limit))

    def find(self, id: str) -> ChatInfo | None:
        """The chat of this id; None if there is none."""
        return at_once(look_at(get_client(), [id]))[0] if is_id(id) else None

    def messages(self, id: str, *, before: int | None = None, limit: int = 50) -> Page:
        """What is there of a chat, for nobody's eyes but those that may. Raises ChatNotFound, ValueError."""
        if not is_id(id):
            raise core.unknown(id)
        return at_once(history_of(get_client(), id, core.keys_of(id), "", before, None, limit))

    async def _page(self, client: AnyRedis, offset: int, limit: int) -> list[ChatInfo]:
        wanted = []
        for tag, size in zip(BUCKETS, await _sizes(client), strict=True):
            if offset < size and limit > 0:
                wanted.append((tag, offset, offset + min(limit, size - offset) - 1))
                limit -= min(limit, size - offset)
            offset = max(0, offset - size)
        listed = await ask(client, wanted, _add_names)
        found = await look_at(client, [text_of(name) for names in listed for name in names])
        return sorted((info for info in found if info), key=_last_at, reverse=True)


async def look_at(client: AnyRedis, chat_ids: Sequence[str]) -> list[ChatInfo | None]:
    """How these stand now, in one round trip; None for what is none."""
    answers = iter(await ask(client, chat_ids, _add_chat))
    four = zip(*[answers] * 4, strict=True)
    return [_read_info(chat_id, *each) for chat_id, each in zip(chat_ids, four, strict=True)]


def _add_chat(pipe: Any, chat_id: str) -> None:
    found = core.keys_of(chat_id)
    chat, messages, members = found.history
    pipe.hmget(chat, _FIELDS)
    pipe.xlen(messages)
    pipe.hlen(members)
    pipe.xrange(messages, count=1)


def _read_info(
    chat_id: str, head: list[bytes | None], messages: int, members: int, first: list[Any]
) -> ChatInfo | None:
    title, created_at, created_by, closed, settings, seq, size, at, gone, said = head
    if seq is None or gone:
        return None
    try:
        its = read_settings((settings or b"").decode())
        made_at, last_at, is_unreadable = instant(created_at or 0), instant(at or 0), False
        numbers = int(seq), int(size or 0), int(said or 0)
    except (ValueError, OverflowError):
        its, made_at, last_at, is_unreadable = ChatSettings(), instant(0), instant(0), True
        numbers = number_of(seq), number_of(size), number_of(said)
    last_seq, in_bytes, has_spoken = numbers
    return ChatInfo(
        id=chat_id,
        title=text_of(title or b""),
        created_at=made_at,
        created_by=text_of(created_by or b""),
        is_closed=bool(closed),
        settings=its,
        last_seq=last_seq,
        first_seq=int(first[0][0].partition(b"-")[0]) if first else last_seq + 1,
        messages=messages,
        bytes=in_bytes if messages else 0,
        members=members,
        last_at=last_at if has_spoken else None,
        is_unreadable=is_unreadable,
    )


def _last_at(info: ChatInfo) -> float:
    return (info.last_at or info.created_at).timestamp()


def _add_names(pipe: Any, page: tuple[str, int, int]) -> None:
    tag, first, last = page
    pipe.zrange(index(tag), first, last, desc=True)


async def _sizes(client: AnyRedis) -> list[int]:
    return await ask(client, BUCKETS, lambda pipe, tag: pipe.zcard(index(tag)))


async def ask(client: AnyRedis, things: Sequence[Any], add: Callable[[Any, Any], object]) -> list[Any]:
    """Return the answers to the commands that *add* puts into a pipeline for each of *things*."""
    if not things:
        return []

    def send() -> Any:
        pipe = client.pipeline(transaction=False)
        for thing in things:
            add(pipe, thing)
        return pipe.execute()

    return list(await reading(send))
