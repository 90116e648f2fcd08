"""Members of a chat: listing, adding and removing them, their roles, and muting."""

from asyncio import to_thread
from typing import TypedDict

from django.http import HttpRequest

from components.api.endpoints import Reply, operation
from components.api.fields import MOST_PEOPLE, Boolean, Choice, Ids, Integer, Number, Text, Values, person
from components.api.people import check_members
from components.kit.validation import MAX_NAME
from components.people import anames_of, anote_contacts
from components.services.autocomplete.folding import MAX_PREFIX, Spelling, check_prefix, is_found, spell
from components.services.chat import Chat, Role
from components.services.chat.api import shapes
from components.services.rates import RateLimit

MEMBER = person("member")
PREFIX = Text(
    "q",
    longest=MAX_NAME,
    also={"minLength": 1, "maxLength": MAX_PREFIX},
    about="List only members with a word in their name that begins with this. "
    "Capitals, accents and the width of letters do not count.",
)
LIMIT = Integer("limit", least=1, most=MOST_PEOPLE)
USERS = Ids("users", is_required=True)
ROLE = Choice("role", of=Role)
MUTED_FOR = Number(
    "muted_for", least=0.001, most=10 * 366 * 86_400, is_nullable=True, about="Seconds; null unmutes."
)
BLOCK = Boolean("block", False, about="The person cannot come back until they are unblocked.")

RATE = RateLimit("api:members", "30/3s")


class Members(TypedDict):
    members: list[shapes.Member]


class Added(TypedDict):
    added: list[str]


@operation(
    "members",
    {200: Reply("Owners are first; with q, those whose full name begins with it, by the alphabet.", Members)},
    query=[PREFIX, LIMIT],
    problems=["chat-not-found", "too-fast"],
)
async def list_members(request: HttpRequest, user: str, values: Values, chat_id: str) -> Members:
    """List the members, or those whose names match."""
    prefix, limit = values.get(PREFIX), values.get(LIMIT)
    if prefix is None:
        return {"members": (await _members(user, chat_id))[:limit]}
    await RATE.aacquire(user)
    wanted = check_prefix(prefix)
    return {"members": (await to_thread(_matching, await _members(user, chat_id), wanted))[:limit]}


@operation(
    "members",
    {200: Reply("The ids of the new members.", Added)},
    body=[USERS],
    problems=["not-allowed", "blocked", "chat-not-found", "too-many-chats", "too-many-members", "too-fast"],
)
async def add_members(request: HttpRequest, user: str, values: Values, chat_id: str) -> Added:
    """Add members."""
    chat, users = Chat(chat_id), values[USERS]
    await chat.anews(user)  # raises for a stranger, who must not learn whether an id belongs to somebody
    await check_members("users", user, users)
    added = await chat.aadd(users, by=user)
    await anote_contacts(user, added, anew=True)
    return {"added": added}


@operation(
    "members",
    {200: Reply("All members.", Members)},
    body=[ROLE, MUTED_FOR],
    problems=["not-allowed", "chat-not-found", "member-not-found"],
)
async def change_member(
    request: HttpRequest, user: str, values: Values, chat_id: str, member: str
) -> Members:
    """Change the role of a member, mute or unmute them. If one of both is refused, nothing changes."""
    chat, role, seconds = Chat(chat_id), values.get(ROLE), values.get(MUTED_FOR)
    if role is not None and MUTED_FOR in values and (await chat.anews(user)).role is not Role.OWNER:
        await chat.aset_role(member, role, by=user)  # which is refused, before anything has changed
    if seconds is not None:
        await chat.amute(member, seconds=seconds, by=user)
    elif MUTED_FOR in values:
        await chat.aunmute(member, by=user)
    if role is not None:
        await chat.aset_role(member, role, by=user)
    return {"members": await _members(user, chat_id)}


@operation(
    "members",
    {204: Reply("The person is not a member.")},
    query=[BLOCK],
    problems=["not-allowed", "chat-not-found", "member-not-found", "too-many-blocked"],
)
async def remove_member(request: HttpRequest, user: str, values: Values, chat_id: str, member: str) -> None:
    """Leave a chat, or remove another member."""
    chat = Chat(chat_id)
    if member == user:
        await chat.anews(user)
        await chat.aleave(user)
    elif values[BLOCK]:
        await chat.ablock(member, by=user)
    else:
        await chat.akick(member, by=user)


@operation(
    "members",
    {204: Reply("The person may come back.")},
    problems=["not-allowed", "chat-not-found", "invalid-value"],
)
async def unblock_member(request: HttpRequest, user: str, values: Values, chat_id: str, member: str) -> None:
    """Unblock a person, so that they can come back."""
    await Chat(chat_id).aunblock(member, by=user)


async def _members(user: str, chat_id: str) -> list[shapes.Member]:
    found = await Chat(chat_id).amembers(user=user)
    names = await anames_of(each.user for each in found)
    return [shapes.member(each, names.get(each.user)) for each in found]


def _matching(members: list[shapes.Member], wanted: Spelling) -> list[shapes.Member]:
    """Return the members with a word that *wanted* begins; those whose whole names it begins come first."""
    spelled = ((spell(each["name"]), each) for each in members)
    found = [(own.key, each) for own, each in spelled if is_found(own, wanted)]
    found.sort(key=lambda pair: (not pair[0].startswith(wanted.key), pair[0]))
    return [each for _key, each in found]
