"""Members of a chat: who they are, adding them, their roles, silence, and their leaving."""

from __future__ import annotations

from django.http import HttpRequest

from components.services.chat import Chat, Role
from components.views.api import shapes
from components.views.api.endpoints import Answer
from components.views.api.fields import body, invalid, query
from components.views.api.persons import check_recipients, names_of

_LONGEST_SILENCE = 10 * 366 * 86_400  # seconds


async def listing(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """GET chats/{id}/members"""
    found = await Chat(chat_id).amembers(user=user)
    names = await names_of(each.user for each in found)
    return Answer({"members": [shapes.member(each, names.get(each.user)) for each in found]})


async def add(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """POST chats/{id}/members: the answer names those who are new."""
    users = body(request, "users").people("users")
    chat = Chat(chat_id)
    await chat.anews(user)  # who is not in it learns nothing, not even that an id is nobody's
    await check_recipients("users", user, users)
    return Answer({"added": await chat.aadd(users, by=user)})


async def change(request: HttpRequest, user: str, chat_id: str, member: str) -> Answer:
    """PATCH chats/{id}/members/{user}: {"role": …} or {"muted_for": seconds, or null to let him speak} or both."""
    values = body(request, "role", "muted_for")
    chat = Chat(chat_id)
    role = _role(values.text("role")) if "role" in values else None
    if "muted_for" in values and values.raw("muted_for") is not None:
        seconds = values.number("muted_for", most=_LONGEST_SILENCE)
        if seconds < 0.001:
            raise invalid("muted_for", "It is less than a millisecond; null lets him speak.")
        await chat.amute(member, seconds=seconds, by=user)
    elif "muted_for" in values:
        await chat.aunmute(member, by=user)
    if role is not None:
        await chat.aset_role(member, role, by=user)
    return await listing(request, user, chat_id)


async def remove(request: HttpRequest, user: str, chat_id: str, member: str) -> Answer:
    """DELETE chats/{id}/members/{user}?block=: oneself leaves; another is kicked, and blocked if so asked."""
    blocks = query(request, "block").boolean("block", False)
    chat = Chat(chat_id)
    if member == user:
        await chat.anews(user)
        await chat.aleave(user)
    elif blocks:
        await chat.ablock(member, by=user)
    else:
        await chat.akick(member, by=user)
    return Answer()


async def unblock(request: HttpRequest, user: str, chat_id: str, member: str) -> Answer:
    """DELETE chats/{id}/blocked/{user}: he may come back."""
    await Chat(chat_id).aunblock(member, by=user)
    return Answer()


def _role(name: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        raise invalid("role", f"It must be one of: {', '.join(Role)}.") from None
