"""Messages of a chat: reading its history, sending, deleting, and how far one has read."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse

from components.api import shapes
from components.api.endpoints import Answer
from components.api.fields import body, idempotency_key, invalid, number, query
from components.people import anames_of, anote_contacts
from components.services.chat import Chat

_MOST = 200  # messages in one answer


async def history(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """GET chats/{id}/messages?before=&after=&limit="""
    values = query(request, "before", "after", "limit")
    before, after = values.integer("before", None), values.integer("after", None)
    limit = values.integer("limit", 50, least=1, most=_MOST)
    if before is not None and after is not None:
        raise invalid("after", "Give before or after, not both.")
    page = await Chat(chat_id).ahistory(user, before=before, after=after, limit=limit)
    return Answer({**shapes.page(page), "people": await anames_of(shapes.people_in(page.messages))})


async def send(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """POST chats/{id}/messages: 201; 200 if it was sent before under the same Idempotency-Key."""
    values = body(request, "text", "data", "mentions")
    sent = await Chat(chat_id).asend(
        user,
        values.text("text", ""),
        data=values.raw("data"),
        mentions=values.people("mentions", []),
        client_id=idempotency_key(request),
    )
    await anote_contacts(user, sent.spoken_to)
    told = {"seq": sent.seq, "sent_at": shapes.instant(sent.sent_at), "is_duplicate": sent.is_duplicate}
    where = reverse("components:api-message", args=[chat_id, str(sent.seq)])
    return Answer(told, 200 if sent.is_duplicate else 201, {"Location": where})


async def one(request: HttpRequest, user: str, chat_id: str, seq: str) -> Answer:
    """GET chats/{id}/messages/{seq}"""
    found = await Chat(chat_id).amessage(user, number(seq))
    return Answer({**shapes.message(found), "people": await anames_of(shapes.people_in([found]))})


async def delete(request: HttpRequest, user: str, chat_id: str, seq: str) -> Answer:
    """DELETE chats/{id}/messages/{seq}"""
    await Chat(chat_id).adelete_message(number(seq), by=user)
    return Answer()


async def read(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """POST chats/{id}/read: the reading position, which only moves forward."""
    seq = body(request, "seq").integer("seq")
    return Answer({"read_seq": await Chat(chat_id).aacknowledge(user, seq)})
