"""Chats: listing, creating, changing, closing and joining them."""

from typing import Annotated, Any, TypedDict

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext
from msgspec import UNSET, Meta, UnsetType

from components.api.endpoints import Answer, Reply, operation
from components.api.people import check_members, check_newcomer
from components.api.requests import Part, invalid
from components.api.shapes import Ids, Nothing, People, Request, Text, Whole, about, shaped
from components.people import anames_of, anote_contacts
from components.services.chat import Chat, ChatSettings, Inbox
from components.services.chat.api import shapes
from components.services.chat.ids import AN_ID, id_for

CHAT_ID = Part("chat_id", {"type": "string", "pattern": f"^{AN_ID.pattern}$"})


class Listed(Request):
    limit: Annotated[int, Meta(ge=1, le=200)] = 100
    after: (
        Annotated[
            str,
            about("The value of next in the previous answer.", pattern=f"^[0-9]{{1,16}}-{AN_ID.pattern}$"),
        ]
        | UnsetType
    ) = UNSET


class ChatFields(Request):
    """A title, and the settings that an owner may change; only the people who run the site change the others."""

    title: Annotated[str, Meta(max_length=200, description="Printable characters.")] | UnsetType = UNSET
    history: Annotated[int, Meta(ge=0, le=10**9)] | UnsetType | None = UNSET
    slow_mode: (
        Annotated[
            float, Meta(ge=0, le=86_400, description="Seconds; 0 for none, else at least a millisecond.")
        ]
        | UnsetType
    ) = UNSET
    is_open: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.title and not self.title.isprintable():
            raise invalid("title", gettext("It holds a character that cannot be printed."))
        if self.slow_mode and self.slow_mode < 0.001:
            raise invalid("slow_mode", gettext("It is less than a millisecond."))

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that are given."""
        found = {name: getattr(self, name) for name in ("history", "slow_mode", "is_open")}
        return {name: value for name, value in found.items() if value is not UNSET}


class NewChat(ChatFields):
    members: Ids = []
    text: Text = ""
    data: Any = None


class Chats(TypedDict):
    chats: list[shapes.Chat]
    next: Annotated[str | None, about("The value of after that asks for the next chats; null at the end.")]
    unavailable: shapes.Unavailable
    people: People


class Unread(TypedDict):
    messages: Whole
    mentions: Annotated[Whole, about("How many of these messages mention the person.")]
    chats: Annotated[Whole, about("In how many chats they are.")]


@operation("chats", {200: Reply("The counts.", Unread)})
async def count_unread(request: HttpRequest, user: str) -> Unread:
    """Count the caller's unread messages, for a badge."""
    return shaped(Unread, await Inbox(user).aunread())


@operation("chats", {200: Reply("The chat with the latest message is first.", Chats)}, query=Listed)
async def list_chats(request: HttpRequest, user: str, given: Listed) -> Chats:
    """List the caller's chats."""
    try:
        if given.after == "":
            raise ValueError
        found = await Inbox(user).apage(limit=given.limit, after=given.after or "")
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
    body=NewChat,
    is_repeatable=True,
    problems=[
        "chat-exists",
        "chat-not-found",
        "too-many-chats",
        "invalid-message",
        "too-many-members",
        "too-fast",
    ],
)
async def create_chat(request: HttpRequest, user: str, given: NewChat, key: str | None) -> Answer:
    """
    Create a chat.

    An earlier request with the same key may have created it; if the caller has left it since, it is not found.
    """
    await check_members("members", user, given.members)
    chat = await Chat.acreate(
        user,
        members=given.members,
        title=given.title or "",
        # Callers cannot choose an id, because they could take one that the project wants to use.
        id=key and id_for(user, key),
        client_id=key,
        settings=ChatSettings(**given.settings),
        by=user,
        text=given.text,
        data=given.data,
    )
    await anote_contacts(user, given.members, anew=True)
    where = reverse("components:api-chat", args=[chat.id])
    return Answer(await _one(chat, user), 201, {"Location": where})


@operation("chats", {200: Reply("The chat.", shapes.WholeChat)}, problems=["chat-not-found"])
async def get_chat(request: HttpRequest, user: str, chat_id: str) -> shapes.WholeChat:
    """Get one chat."""
    return await _one(Chat(chat_id), user)


@operation(
    "chats",
    {200: Reply("The chat as it is now.", shapes.WholeChat)},
    body=ChatFields,
    problems=["not-allowed", "chat-not-found"],
)
async def change_chat(request: HttpRequest, user: str, given: ChatFields, chat_id: str) -> shapes.WholeChat:
    """
    Change the title or the settings.

    The owner and moderators can change the title. Only the owner can change the settings.
    """
    chat = Chat(chat_id)
    # Checked first, so that a stranger triggers nothing, not even the trimming that new settings cause.
    await chat.anews(user)
    if (
        given.settings
    ):  # first, since who may change them may change the title: a refused request changes nothing
        await chat.aconfigure(by=user, **given.settings)
    if given.title is not UNSET:
        await chat.arename(given.title, by=user)
    return await _one(chat, user)


@operation("chats", {204: Reply("Closed.")}, body=Nothing, problems=["not-allowed", "chat-not-found"])
async def close_chat(request: HttpRequest, user: str, given: Nothing, chat_id: str) -> None:
    """Close a chat, so that it can only be read."""
    await Chat(chat_id).aclose(by=user)


@operation("chats", {204: Reply("Open.")}, body=Nothing, problems=["not-allowed", "chat-not-found"])
async def reopen_chat(request: HttpRequest, user: str, given: Nothing, chat_id: str) -> None:
    """Open a closed chat again."""
    await Chat(chat_id).areopen(by=user)


@operation(
    "chats",
    {200: Reply("The chat.", shapes.WholeChat)},
    body=Nothing,
    problems=["blocked", "chat-not-found", "chat-closed", "too-many-chats", "too-many-members", "too-fast"],
)
async def join_chat(request: HttpRequest, user: str, given: Nothing, chat_id: str) -> shapes.WholeChat:
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
