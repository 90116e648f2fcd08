"""Chats: those of a person, one of them, what its owner changes about it, and joining."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from components.api import shapes
from components.api.endpoints import Answer
from components.api.fields import Values, body, idempotency_key, invalid, query
from components.people import anames_of, anote_contacts
from components.people.api import check_members, check_newcomer
from components.services.chat import Chat, ChatSettings, Inbox

LONGEST_TITLE = 200  # characters
_MOST = 200  # chats in one answer
_LONGEST_PAUSE = 86_400  # seconds of slow mode
#: What an owner may say about a chat; all other settings are for those who run the site.
_SETTINGS = ("history", "slow_mode", "is_open")


async def listing(request: HttpRequest, user: str) -> Answer:
    """GET chats?limit=&after=: those of the person, with the latest message first."""
    values = query(request, "limit", "after")
    limit = values.integer("limit", 100, least=1, most=_MOST)
    try:
        if "after" in values and not values.text("after"):
            raise ValueError
        found = await Inbox(user).apage(limit=limit, after=values.text("after", ""))
    except ValueError:
        raise invalid("after", "It must be what the answer before gave as next.") from None
    names = await anames_of(shapes.people_of(found.chats))
    told = [shapes.chat(each) for each in found.chats]
    away = list(found.unavailable)
    return Answer({"chats": told, "next": found.next or None, "unavailable": away, "people": names})


async def create(request: HttpRequest, user: str) -> Answer:
    """POST chats. Ids are the app's: a caller who chose them could take those that the project has plans for."""
    values = body(request, "title", "members", "text", "data", *_SETTINGS)
    members = values.people("members", [])
    first = {"text": values.text("text", ""), "data": values.raw("data")}
    title, key = _title(values), idempotency_key(request)
    settings = ChatSettings(**_settings(values))
    await check_members("members", user, members)
    chat = await Chat.acreate(
        user,
        members=members,
        title=title,
        id=key and _id_for(user, key),
        client_id=key,
        settings=settings,
        by=user,
        **first,
    )
    await anote_contacts(user, members, anew=True)
    where = reverse("components:api-chat", args=[chat.id])
    return Answer(await _one(chat, user), 201, {"Location": where})


async def one(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """GET chats/{id}."""
    return Answer(await _one(Chat(chat_id), user))


async def change(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """PATCH chats/{id}."""
    values = body(request, "title", *_SETTINGS)
    chat, settings = Chat(chat_id), _settings(values)
    title = _title(values) if "title" in values else None
    # A stranger sets nothing in motion, not even the trimming that comes with settings.
    await chat.anews(user)
    if title is not None:
        await chat.arename(title, by=user)
    if settings:
        await chat.aconfigure(by=user, **settings)
    return Answer(await _one(chat, user))


async def close(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """POST chats/{id}/close."""
    body(request)
    await Chat(chat_id).aclose(by=user)
    return Answer()


async def reopen(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """POST chats/{id}/reopen."""
    body(request)
    await Chat(chat_id).areopen(by=user)
    return Answer()


async def join(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """POST chats/{id}/join: into an open chat, whose id the person has from somewhere."""
    body(request)
    chat = Chat(chat_id)
    if (await chat.ainfo()).settings.is_open:  # any other refuses by itself
        members = [each.user for each in await chat.amembers()]
        if user not in members:
            await check_newcomer(user, members)
    await chat.ajoin(user)
    return Answer(await _one(chat, user))


async def _one(chat: Chat, user: str) -> dict[str, Any]:
    news = await chat.anews(user)
    info = await chat.ainfo()
    names = await anames_of(shapes.people_of([news]))
    return {**shapes.chat(news), "settings": shapes.settings(info.settings), "people": names}


def _title(values: Values) -> str:
    title = values.text("title", "", longest=LONGEST_TITLE)
    if title and not title.isprintable():
        raise invalid("title", "It holds a character that cannot be printed.")
    return title


def _settings(values: Values) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "history" in values:
        found["history"] = None if values.raw("history") is None else values.integer("history", most=10**9)
    if "slow_mode" in values:
        found["slow_mode"] = values.number("slow_mode", most=_LONGEST_PAUSE)
        if 0 < found["slow_mode"] < 0.001:
            raise invalid("slow_mode", "It is less than a millisecond.")
    if "is_open" in values:
        found["is_open"] = values.boolean("is_open")
    return found


def _id_for(user: str, key: str) -> str:
    """The same for a repeated request, and for no other."""
    return sha256(f"{user}\0{key}".encode()).hexdigest()[:32]
