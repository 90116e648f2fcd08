"""What look.lua says of a chat, as a record."""

from __future__ import annotations

from typing import Any

from components.kit.stored import number_of, text_of
from components.services.chat.formats import ROLES, muted_until, read_message
from components.services.chat.records import ChatNews
from components.services.counters import tally


def read_news(chat_id: str, found: Any) -> ChatNews:
    """
    Return what it says of a chat that the person is in.

    Raises ValueError if what is stored of the chat itself, or of the membership, cannot be read.
    """
    title, words, reads, last, entries = found
    tally("chat:fetched", len(entries))
    role, *numbers, muted, has_more = words.decode().split()
    if role not in ROLES:
        raise ValueError(f"The role {role!r} in the chat {chat_id!r} is not known.")
    closed, last_seq, read_seq, unread, mentions, members, revision, missed, oldest = map(int, numbers)
    return ChatNews(
        chat_id=chat_id,
        title=text_of(title or b""),  # an empty one is not stored
        role=ROLES[role],
        is_closed=bool(closed),
        last_seq=last_seq,
        read_seq=read_seq,
        unread=unread,
        mentions=mentions,
        members=members,
        revision=revision,
        messages=[read_message(chat_id, entry) for entry in entries],
        has_more=has_more == "1",
        missed=missed,
        oldest=oldest,
        last_message=read_message(chat_id, last) if last else None,
        reads={text_of(who): number_of(seq) for who, seq in zip(reads[::2], reads[1::2], strict=True)},
        muted_until=muted_until(muted),
    )
