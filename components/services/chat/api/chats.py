"""Chats: listing, creating, changing, closing and joining them."""

from typing import Annotated, Any, TypedDict

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from components.api.endpoints import Answer, Reply, operation
from components.api.fields import (
    DATA,
    IDEMPOTENCY_KEY,
    TEXT,
    Boolean,
    Ids,
    Integer,
    Number,
    Text,
    Values,
    invalid,
)
from components.api.people import check_members, check_newcomer
from components.api.shapes import People, shaped
from components.people import anames_of, anote_contacts
from components.services.chat import Chat, ChatSettings, Inbox
from components.services.chat.api import shapes
from components.services.chat.ids import AN_ID, id_for

CHAT_ID = Text("chat_id", also={"pattern": f"^{AN_ID.pattern}$"})
LIMIT = Integer("limit", 100, least=1, most=200)
AFTER = Text(
    "after",
    also={"pattern": f"^[0-9]{{1,16}}-{AN_ID.pattern}$"},
    about="The value of next in the previous answer.",
)
MEMBERS = Ids("members")


class Title(Text):
    def check(self, value: Any) -> str:
        title = super().check(value)
        if title and not title.isprintable():
            raise ValueError(gettext("It holds a character that cannot be printed."))
        return title


class Pause(Number):
    def check(self, value: Any) -> float:
        pause = super().check(value)
        if 0 < pause < 0.001:
            raise ValueError(gettext("It is less than a millisecond."))
        return pause


TITLE = Title("title", "", longest=200, about="Printable characters.")
#: The settings that an owner may change; only the people who run the site change the others.
SETTINGS = (
    Integer("history", most=10**9, is_nullable=True),
    Pause("slow_mode", most=86_400, about="Seconds; 0 for none, else at least a millisecond."),
    Boolean("is_open"),
)


class Chats(TypedDict):
    chats: list[shapes.Chat]
    next: Annotated[str | None, "The value of after that asks for the next chats; null at the end."]
    unavailable: shapes.Unavailable
    people: People


class Unread(TypedDict):
    messages: int
    mentions: Annotated[int, "How many of these messages mention the person."]
    chats: Annotated[int, "In how many chats they are."]


@operation("chats", {200: Reply("The counts.", Unread)})
async def count_unread(request: HttpRequest, user: str, values: Values) -> Unread:
    """Count the caller's unread messages, for a badge."""
    return shaped(Unread, await Inbox(user).aunread())


@operation("chats", {200: Reply("The chat with the latest message is first.", Chats)}, query=[LIMIT, AFTER])
async def list_chats(request: HttpRequest, user: str, values: Values) -> Chats:
    """List the caller's chats."""
    after = values.get(AFTER)
    try:
        if after == "":
            raise ValueError
        found = await Inbox(user).apage(limit=values[LIMIT], after=after or "")
    except ValueError:
        raise invalid("after", gettext("It must be the value of next in the previous answer.")) from None
    return {
        "chats": [shapes.chat(each) for each in found.chats],
        "next": found.next or None,
        "unavailable": list(found.unavailable),
        "people": await anames_of(shapes.people_of(found.chats)),
    }


@operation(
    "chats",
    {201: Reply("Created, now or by an earlier request with the same key.", shapes.WholeChat, "Location")},
    headers=[IDEMPOTENCY_KEY],
    body=[TITLE, MEMBERS, TEXT, DATA, *SETTINGS],
    problems=[
        "chat-exists",
        "chat-not-found",
        "too-many-chats",
        "invalid-message",
        "too-many-members",
        "too-fast",
    ],
)
async def create_chat(request: HttpRequest, user: str, values: Values) -> Answer:
    """
    Create a chat.

    An earlier request with the same key may have created it; if the caller has left it since, it is not found.
    """
    members, key = values.get(MEMBERS) or [], values.get(IDEMPOTENCY_KEY)
    await check_members("members", user, members)
    chat = await Chat.acreate(
        user,
        members=members,
        title=values[TITLE],
        # Callers cannot choose an id, because they could take one that the project wants to use.
        id=key and id_for(user, key),
        client_id=key,
        settings=ChatSettings(**_settings(values)),
        by=user,
        text=values[TEXT],
        data=values.get(DATA),
    )
    await anote_contacts(user, members, anew=True)
    where = reverse("components:api-chat", args=[chat.id])
    return Answer(await _one(chat, user), 201, {"Location": where})


@operation("chats", {200: Reply("The chat.", shapes.WholeChat)}, problems=["chat-not-found"])
async def get_chat(request: HttpRequest, user: str, values: Values, chat_id: str) -> shapes.WholeChat:
    """Get one chat."""
    return await _one(Chat(chat_id), user)


@operation(
    "chats",
    {200: Reply("The chat as it is now.", shapes.WholeChat)},
    body=[TITLE, *SETTINGS],
    problems=["not-allowed", "chat-not-found"],
)
async def change_chat(request: HttpRequest, user: str, values: Values, chat_id: str) -> shapes.WholeChat:
    """
    Change the title or the settings.

    The owner and moderators can change the title. Only the owner can change the settings.
    """
    chat, settings = Chat(chat_id), _settings(values)
    # Checked first, so that a stranger triggers nothing, not even the trimming that new settings cause.
    await chat.anews(user)
    if settings:  # first, since who may change them may change the title: a refused request changes nothing
        await chat.aconfigure(by=user, **settings)
    if TITLE in values:
        await chat.arename(values[TITLE], by=user)
    return await _one(chat, user)


@operation("chats", {204: Reply("Closed.")}, body=(), problems=["not-allowed", "chat-not-found"])
async def close_chat(request: HttpRequest, user: str, values: Values, chat_id: str) -> None:
    """Close a chat, so that it can only be read."""
    await Chat(chat_id).aclose(by=user)


@operation("chats", {204: Reply("Open.")}, body=(), problems=["not-allowed", "chat-not-found"])
async def reopen_chat(request: HttpRequest, user: str, values: Values, chat_id: str) -> None:
    """Open a closed chat again."""
    await Chat(chat_id).areopen(by=user)


@operation(
    "chats",
    {200: Reply("The chat.", shapes.WholeChat)},
    body=(),
    problems=["blocked", "chat-not-found", "chat-closed", "too-many-chats", "too-many-members", "too-fast"],
)
async def join_chat(request: HttpRequest, user: str, values: Values, chat_id: str) -> shapes.WholeChat:
    """
    Join an open chat.

    Anyone who knows the id of an open chat may join it.
    """
    chat = Chat(chat_id)
    if (await chat.ainfo()).settings.is_open:  # a chat that is not open refuses the join itself
        members = [each.user for each in await chat.amembers()]
        if user not in members:
            await check_newcomer(user, members)
    await chat.ajoin(user)
    return await _one(chat, user)


async def _one(chat: Chat, user: str) -> shapes.WholeChat:
    news = await chat.anews(user)
    info = await chat.ainfo()
    names = await anames_of(shapes.people_of([news]))
    return {**shapes.chat(news), "settings": shapes.settings(info.settings), "people": names}


def _settings(values: Values) -> dict[str, Any]:
    return {each.name: values.get(each) for each in SETTINGS if each in values}
