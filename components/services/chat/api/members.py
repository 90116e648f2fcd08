"""Members of a chat: listing, adding and removing them, their roles, and muting."""

from asyncio import to_thread
from typing import Annotated, TypedDict

from django.http import HttpRequest
from msgspec import UNSET, Meta, UnsetType

from components.api.endpoints import Reply, operation
from components.api.people import check_members
from components.api.requests import person
from components.api.shapes import MOST_PEOPLE, Ids, Request, about
from components.people import anames_of, anote_contacts
from components.services.autocomplete.folding import MAX_PREFIX, Spelling, check_prefix, is_found, spell
from components.services.chat import Chat, Role
from components.services.chat.api import shapes
from components.services.rates import RateLimit

MEMBER = person("member")
RATE = RateLimit("api:members", "30/3s")


class Wanted(Request):
    q: (
        Annotated[
            str,
            about(
                "List only members with a word in their name that begins with this. "
                "Capitals, accents and the width of letters do not count.",
                minLength=1,
                maxLength=MAX_PREFIX,
            ),
        ]
        | UnsetType
    ) = UNSET
    limit: Annotated[int, Meta(ge=1, le=MOST_PEOPLE)] | None = None


class NewMembers(Request):
    users: Ids


class ChangedMember(Request):
    role: Role | UnsetType = UNSET
    muted_for: Annotated[
        Annotated[float, Meta(ge=0.001, le=10 * 366 * 86_400)] | UnsetType | None,
        about("Seconds; null unmutes."),
    ] = UNSET


class Removal(Request):
    block: Annotated[bool, about("The person cannot come back until they are unblocked.")] = False


class Members(TypedDict):
    members: list[shapes.Member]


class Added(TypedDict):
    added: list[str]


@operation(
    "members",
    {200: Reply("Owners are first; with q, those whose full name begins with it, by the alphabet.", Members)},
    query=Wanted,
    problems=["chat-not-found", "too-fast"],
)
async def list_members(request: HttpRequest, user: str, given: Wanted, chat_id: str) -> Members:
    """List the members, or those whose names match."""
    if given.q is UNSET:
        return {"members": (await _members(user, chat_id))[: given.limit]}
    await RATE.aacquire(user)
    wanted = check_prefix(given.q)
    return {"members": (await to_thread(_matching, await _members(user, chat_id), wanted))[: given.limit]}


@operation(
    "members",
    {200: Reply("The ids of the new members.", Added)},
    body=NewMembers,
    problems=["not-allowed", "blocked", "chat-not-found", "too-many-chats", "too-many-members", "too-fast"],
)
async def add_members(request: HttpRequest, user: str, given: NewMembers, chat_id: str) -> Added:
    """Add members."""
    chat, users = Chat(chat_id), given.users
    await chat.anews(user)  # raises for a stranger, who must not learn whether an id belongs to somebody
    await check_members("users", user, users)
    added = await chat.aadd(users, by=user)
    await anote_contacts(user, added, anew=True)
    return {"added": added}


@operation(
    "members",
    {200: Reply("All members.", Members)},
    body=ChangedMember,
    problems=["not-allowed", "chat-not-found", "member-not-found"],
)
async def change_member(
    request: HttpRequest, user: str, given: ChangedMember, chat_id: str, member: str
) -> Members:
    """Change the role of a member, mute or unmute them. If one of both is refused, nothing changes."""
    chat, role, seconds = Chat(chat_id), given.role, given.muted_for
    if role and seconds is not UNSET and (await chat.anews(user)).role is not Role.OWNER:
        await chat.aset_role(member, role, by=user)  # which is refused, before anything has changed
    if seconds is None:
        await chat.aunmute(member, by=user)
    elif seconds is not UNSET:
        await chat.amute(member, seconds=seconds, by=user)
    if role:
        await chat.aset_role(member, role, by=user)
    return {"members": await _members(user, chat_id)}


@operation(
    "members",
    {204: Reply("The person is not a member.")},
    query=Removal,
    problems=["not-allowed", "chat-not-found", "member-not-found", "too-many-blocked"],
)
async def remove_member(request: HttpRequest, user: str, given: Removal, chat_id: str, member: str) -> None:
    """Leave a chat, or remove another member."""
    chat = Chat(chat_id)
    if member == user:
        await chat.anews(user)
        await chat.aleave(user)
    elif given.block:
        await chat.ablock(member, by=user)
    else:
        await chat.akick(member, by=user)


@operation(
    "members",
    {204: Reply("The person may come back.")},
    problems=["not-allowed", "chat-not-found", "invalid-value"],
)
async def unblock_member(request: HttpRequest, user: str, chat_id: str, member: str) -> None:
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
