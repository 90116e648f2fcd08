"""Messages of a chat: reading the history, sending, deleting, and marking as read."""

from asyncio import to_thread
from typing import Annotated, TypedDict

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext
from msgspec import Meta

from components.api.endpoints import Answer, Reply, operation
from components.api.requests import invalid
from components.api.shapes import (
    LARGEST,
    Ids,
    Instant,
    People,
    Request,
    TextOrData,
    Whole,
    about,
    instant,
    shaped,
)
from components.people import anames_of, anote_contacts
from components.services.autocomplete.folding import MAX_PREFIX
from components.services.chat import Chat
from components.services.chat.api import shapes
from components.services.chat.emoji import FORM
from components.services.chat.search import MAX_WORDS
from components.services.rates import RateLimit

Before = Annotated[Whole | None, about("List only messages before this seq.")]
RATE = RateLimit("api:search", "10/5s")


class History(Request):
    before: Before = None
    after: Annotated[Whole | None, about("List only messages after this seq.")] = None
    around: Annotated[Whole | None, about("List the messages around this seq.")] = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class Sought(Request):
    q: Annotated[
        str,
        Meta(max_length=MAX_PREFIX),
        about(
            f"Up to {MAX_WORDS} words, or beginnings of words, all of which occur in the text. "
            "Capitals, accents and the width of letters do not count.",
            minLength=1,
        ),
    ]
    before: Before = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class NewText(TextOrData):
    mentions: Ids = []


class NewMessage(NewText):
    reply_to: Annotated[
        Annotated[int, Meta(ge=1, le=LARGEST)] | None, about("The seq of a message that it replies to.")
    ] = None


class Reaction(Request):
    emoji: Annotated[str, about("One emoji of Unicode's list.", pattern=f"^(?:{FORM})$")]
    is_on: Annotated[bool, about("False removes the reaction.")] = True


class ReadMark(Request):
    seq: Whole


class Messages(TypedDict):
    messages: list[shapes.Message]
    has_more: Annotated[
        bool, about("There are more messages in the requested direction; with around, older ones.")
    ]
    has_newer: Annotated[bool, about("With around, there are newer messages.")]
    oldest: Whole
    people: People


class FoundMessages(TypedDict):
    messages: Annotated[list[shapes.Message], about("The newest is first.")]
    next: Annotated[
        Whole | None,
        about("The value of before that searches on; null if the whole history has been searched."),
    ]
    people: People


class WholeMessage(shapes.Message):
    people: People


class Sent(TypedDict):
    seq: Whole
    sent_at: Instant
    is_duplicate: bool


class Edited(TypedDict):
    seq: Whole
    edited_at: Instant


class ReadPosition(TypedDict):
    read_seq: Whole


@operation(
    "messages",
    {200: Reply("The page.", Messages)},
    query=History,
    problems=["chat-not-found"],
)
async def list_messages(request: HttpRequest, user: str, given: History, chat_id: str) -> Messages:
    """
    List a page of the history, oldest first.

    Give one of before, after and around, or none of them for the newest messages.
    """
    where = {name: getattr(given, name) for name in ("before", "after", "around")}
    if len(places := [name for name, seq in where.items() if seq is not None]) > 1:
        raise invalid(places[-1], gettext("Give only one of before, after and around."))
    page = await Chat(chat_id).ahistory(user, **where, limit=given.limit)
    messages = await to_thread(lambda: [*map(shapes.message, page.messages)])
    people = await anames_of(id for each in page.messages for id in each.people)
    return shaped(Messages, page, messages=messages, people=people)


@operation(
    "messages",
    {
        200: Reply(
            "The messages found. If next is not null, older ones have not been searched yet.", FoundMessages
        )
    },
    query=Sought,
    problems=["chat-not-found", "too-fast"],
)
async def search_messages(request: HttpRequest, user: str, given: Sought, chat_id: str) -> FoundMessages:
    """
    Search the history for words.

    One request searches up to 2,000 messages, from the newest or from before, for a quarter of a second at most.
    """
    await RATE.aacquire(user)
    found = await Chat(chat_id).asearch(user, given.q, before=given.before, limit=given.limit)
    messages = await to_thread(lambda: [*map(shapes.message, found.messages)])
    people = await anames_of(id for each in found.messages for id in each.people)
    return shaped(FoundMessages, found, messages=messages, people=people)


@operation(
    "messages",
    {
        201: Reply("Sent.", Sent, "Location"),
        200: Reply("Sent by an earlier request with the same key.", Sent, "Location"),
    },
    body=NewMessage,
    is_repeatable=True,
    problems=["muted", "chat-not-found", "message-not-found", "chat-closed", "invalid-message", "too-fast"],
)
async def send_message(
    request: HttpRequest, user: str, given: NewMessage, chat_id: str, key: str | None
) -> Answer:
    """
    Send a message.

    It has a text, data, or both.
    """
    sent = await Chat(chat_id).asend(
        user,
        given.text,
        data=given.data,
        mentions=given.mentions,
        client_id=key,
        reply_to=given.reply_to,
    )
    await anote_contacts(user, sent.spoken_to)
    where = reverse("components:api-message", args=[chat_id, str(sent.seq)])
    return Answer(shaped(Sent, sent), 200 if sent.is_duplicate else 201, {"Location": where})


@operation(
    "messages", {200: Reply("The message.", WholeMessage)}, problems=["chat-not-found", "message-not-found"]
)
async def get_message(request: HttpRequest, user: str, chat_id: str, seq: int) -> WholeMessage:
    """Get one message or event."""
    found = await Chat(chat_id).amessage(user, seq)
    shown = await to_thread(shapes.message, found)
    return {**shown, "people": await anames_of(found.people)}


@operation(
    "messages",
    {200: Reply("Edited.", Edited)},
    body=NewText,
    problems=[
        "not-allowed",
        "muted",
        "chat-not-found",
        "message-not-found",
        "chat-closed",
        "invalid-message",
        "too-fast",
    ],
)
async def edit_message(request: HttpRequest, user: str, given: NewText, chat_id: str, seq: int) -> Edited:
    """
    Replace text, data and mentions of one's own message.

    Nothing becomes unread. Only people who have not read the message are notified of a new mention.
    """
    edited_at = await Chat(chat_id).aedit(user, seq, given.text, data=given.data, mentions=given.mentions)
    return {"seq": seq, "edited_at": instant(edited_at)}


@operation(
    "messages",
    {204: Reply("The reaction is there, or is removed.")},
    body=Reaction,
    problems=["muted", "chat-not-found", "message-not-found", "chat-closed", "invalid-message", "too-fast"],
)
async def react(request: HttpRequest, user: str, given: Reaction, chat_id: str, seq: int) -> None:
    """Add a reaction to a message, or remove it."""
    await Chat(chat_id).areact(user, seq, given.emoji, is_on=given.is_on)


@operation(
    "messages", {204: Reply("Deleted.")}, problems=["not-allowed", "chat-not-found", "message-not-found"]
)
async def delete_message(request: HttpRequest, user: str, chat_id: str, seq: int) -> None:
    """
    Delete a message.

    Members delete their own messages; the owner and moderators delete any.
    """
    await Chat(chat_id).adelete_message(seq, by=user)


@operation(
    "messages",
    {200: Reply("The position as it is now.", ReadPosition)},
    body=ReadMark,
    problems=["chat-not-found"],
)
async def mark_read(request: HttpRequest, user: str, given: ReadMark, chat_id: str) -> ReadPosition:
    """Move the reading position forward."""
    return {"read_seq": await Chat(chat_id).aacknowledge(user, given.seq)}
