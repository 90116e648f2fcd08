"""What the facts of services look like in JSON. Instants are ISO 8601, in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from components.services.autocomplete import Contact, Entry
from components.services.chat import ChatMessage, ChatNews, ChatSettings, Member, Page
from components.services.mailboxes import Delivery, Mail

LONGEST_LAST = 200  # characters of a last message


def instant(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def message(found: ChatMessage) -> dict[str, Any]:
    event = found.event
    return {
        "seq": found.seq,
        "sender": found.sender,
        "text": found.text,
        "data": found.data,
        "mentions": list(found.mentions),
        "sent_at": instant(found.sent_at),
        "client_id": found.client_id,
        "event": event
        and {"kind": str(event.kind), "by": event.by, "user": event.user, "detail": event.detail},
        "is_unreadable": found.is_unreadable,
    }


def page(found: Page) -> dict[str, Any]:
    return {
        "messages": [message(each) for each in found.messages],
        "has_more": found.has_more,
        "oldest": found.oldest,
    }


def shortened(found: ChatMessage) -> ChatMessage:
    """Return what a list shows of a chat's last message: the beginning of its text, no data and no mentions."""
    return replace(found, text=found.text[:LONGEST_LAST], data=None, mentions=())


def chat(news: ChatNews) -> dict[str, Any]:
    return {
        "id": news.chat_id,
        "title": news.title,
        "role": str(news.role),
        "is_closed": news.is_closed,
        "last_seq": news.last_seq,
        "read_seq": news.read_seq,
        "unread": news.unread,
        "mentions": news.mentions,
        "member_count": news.members,
        "oldest": news.oldest,
        "last_message": news.last_message and message(shortened(news.last_message)),
        "reads": dict(news.reads),
        "muted_until": instant(news.muted_until),
    }


def changed_chat(news: ChatNews) -> dict[str, Any]:
    """A chat with its messages after the position of the client."""
    return {
        **chat(news),
        "messages": [message(each) for each in news.messages],
        "has_more": news.has_more,
        "missed": news.missed,
    }


def settings(found: ChatSettings) -> dict[str, Any]:
    """What an owner may change, and what a client should know before it sends."""
    return {
        "history": found.history,
        "slow_mode": found.slow_mode,
        "is_open": found.is_open,
        "max_text": found.max_text,
        "max_members": found.max_members,
    }


def member(found: Member, name: str | None) -> dict[str, Any]:
    return {
        "id": found.user,
        "name": name or found.user,
        "role": str(found.role),
        "joined_at": instant(found.joined_at),
        "read_seq": found.read_seq,
        "muted_until": instant(found.muted_until),
    }


def mail(found: Mail) -> dict[str, Any]:
    return {
        "id": found.id,
        "sender": found.sender,
        "text": found.text,
        "data": found.data,
        "sent_at": instant(found.sent_at),
        "is_again": found.is_again,
        "is_unreadable": found.is_unreadable,
    }


def delivery(found: Delivery) -> dict[str, Any]:
    return {
        "id": found.id,
        "fate": str(found.fate).replace(" ", "_"),
        "recipient_pulled_at": instant(found.pulled_at),
    }


def entry(found: Entry) -> dict[str, Any]:
    return {"id": found.id, "label": found.label}


def contact(found: Contact, name: str | None) -> dict[str, Any]:
    return {
        "id": found.id,
        "label": name or found.label,
        "touched_at": instant(found.touched_at),
    }


def people_of(chats: Iterable[ChatNews]) -> Iterator[str]:
    """The ids of all whom *chats* speak of, those who read along included."""
    for each in chats:
        yield from each.reads
        yield from people_in((*each.messages, each.last_message and shortened(each.last_message)))


def people_in(messages: Iterable[ChatMessage | None]) -> Iterator[str]:
    """The ids of all whom *messages* speak of."""
    for each in messages:
        if each is not None:
            yield from each.people
