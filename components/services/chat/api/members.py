"""Members of a chat: who they are, adding them, their roles, silence, and their leaving."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from django.http import HttpRequest

from components.api import shapes
from components.api.endpoints import Answer
from components.api.fields import MOST_PEOPLE, body, invalid, query
from components.api.throttle import Throttle
from components.kit.values import MAX_NAME
from components.people import anames_of, anote_contacts
from components.people.api import check_members
from components.services.autocomplete.folding import Spelling, check_prefix, is_found, spell
from components.services.chat import Chat, Role

_LONGEST_SILENCE = 10 * 366 * 86_400  # seconds
_throttle = Throttle(rate=10, burst=30)


async def listing(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """GET chats/{id}/members?q=&limit=: all; or those of whose name a word begins with q."""
    values = query(request, "q", "limit")
    limit = values.integer("limit", MOST_PEOPLE, least=1, most=MOST_PEOPLE) if "limit" in values else None
    if "q" not in values:
        return Answer({"members": (await _members(user, chat_id))[:limit]})
    _throttle.check(user)
    wanted = check_prefix(values.text("q", longest=MAX_NAME))
    fitting = [
        (rank, each) for each in await _members(user, chat_id) if (rank := _fits(each["name"], wanted))
    ]
    return Answer({"members": [each for _rank, each in sorted(fitting, key=itemgetter(0))[:limit]]})


async def add(request: HttpRequest, user: str, chat_id: str) -> Answer:
    """POST chats/{id}/members: the answer names those who are new."""
    users = body(request, "users").people("users")
    chat = Chat(chat_id)
    await chat.anews(user)  # strangers learn nothing, not even whether somebody has an id
    await check_members("users", user, users)
    added = await chat.aadd(users, by=user)
    await anote_contacts(user, added, anew=True)
    return Answer({"added": added})


async def change(request: HttpRequest, user: str, chat_id: str, member: str) -> Answer:
    """PATCH chats/{id}/members/{user}: {"role": …} or {"muted_for": seconds, or null to unmute} or both."""
    values = body(request, "role", "muted_for")
    chat = Chat(chat_id)
    role = _role(values.text("role")) if "role" in values else None
    if "muted_for" in values and values.raw("muted_for") is not None:
        seconds = values.number("muted_for", most=_LONGEST_SILENCE)
        if seconds < 0.001:
            raise invalid("muted_for", "It is less than a millisecond; null unmutes.")
        await chat.amute(member, seconds=seconds, by=user)
    elif "muted_for" in values:
        await chat.aunmute(member, by=user)
    if role is not None:
        await chat.aset_role(member, role, by=user)
    return Answer({"members": await _members(user, chat_id)})


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
    """DELETE chats/{id}/blocked/{user}: they may come back."""
    await Chat(chat_id).aunblock(member, by=user)
    return Answer()


async def _members(user: str, chat_id: str) -> list[dict[str, Any]]:
    found = await Chat(chat_id).amembers(user=user)
    names = await anames_of(each.user for each in found)
    return [shapes.member(each, names.get(each.user)) for each in found]


def _fits(name: str, wanted: Spelling) -> tuple[bool, str] | None:
    """Return the sort key of a member whom *wanted* finds: first those whose name begins so. None for others."""
    own = spell(name)
    return (not own.key.startswith(wanted.key), own.key) if is_found(own, wanted) else None


def _role(name: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        raise invalid("role", f"It must be one of: {', '.join(Role)}.") from None
