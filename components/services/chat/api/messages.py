"""Messages of a chat: reading the history, sending, deleting, and marking as read."""

from asyncio import to_thread
from typing import Annotated, TypedDict

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from components.api.endpoints import Answer, Reply, operation
from components.api.fields import (
    DATA,
    IDEMPOTENCY_KEY,
    TEXT,
    TEXT_OR_DATA,
    Boolean,
    Ids,
    Integer,
    Text,
    Values,
    invalid,
)
from components.api.shapes import Instant, People, instant, shaped
from components.people import anames_of, anote_contacts
from components.services.autocomplete.folding import MAX_PREFIX
from components.services.chat import Chat
from components.services.chat.api import shapes
from components.services.chat.emoji import FORM
from components.services.chat.search import MAX_WORDS
from components.services.rates import RateLimit

BEFORE = Integer("before", about="List only messages before this seq. Cannot be combined with after.")
AFTER = Integer("after", about="List only messages after this seq.")
AROUND = Integer("around", about="List the messages around this seq. Cannot be combined with the others.")
LIMIT = Integer("limit", 50, least=1, most=200)
MENTIONS = Ids("mentions")
REPLY_TO = Integer("reply_to", least=1, is_nullable=True, about="The seq of a message that it replies to.")
SEQ = Integer("seq", is_required=True)
WORDS = Text(
    "q",
    is_required=True,
    longest=MAX_PREFIX,
    also={"minLength": 1},
    about=f"Up to {MAX_WORDS} words, or beginnings of words, all of which occur in the text. "
    "Capitals, accents and the width of letters do not count.",
)
FOUND = Integer("limit", 20, least=1, most=200)
EMOJI = Text(
    "emoji", is_required=True, also={"pattern": f"^(?:{FORM})$"}, about="One emoji of Unicode's list."
)
IS_ON = Boolean("is_on", True, about="False removes the reaction.")


RATE = RateLimit("api:search", "10/5s")


class Messages(TypedDict):
    messages: list[shapes.Message]
    has_more: Annotated[bool, "There are more messages in the requested direction; with around, older ones."]
    has_newer: Annotated[bool, "With around, there are newer messages."]
    oldest: int
    people: People


class FoundMessages(TypedDict):
    messages: Annotated[list[shapes.Message], "The newest is first."]
    next: Annotated[
        int | None, "The value of before that searches on; null if the whole history has been searched."
    ]
    people: People


class WholeMessage(shapes.Message):
    people: People


class Sent(TypedDict):
    seq: int
    sent_at: Instant
    is_duplicate: bool


class Edited(TypedDict):
    seq: int
    edited_at: Instant


class ReadPosition(TypedDict):
    read_seq: int


@operation(
    "messages",
    {200: Reply("The page.", Messages)},
    query=[BEFORE, AFTER, AROUND, LIMIT],
    problems=["chat-not-found"],
)
async def list_messages(request: HttpRequest, user: str, values: Values, chat_id: str) -> Messages:
    """
    List a page of the history, oldest first.

    Without before, after and around, list the newest messages.
    """
    given = {each.name: values.get(each) for each in (BEFORE, AFTER, AROUND) if values.get(each) is not None}
    if len(given) > 1:
        raise invalid([*given][-1], gettext("Give only one of before, after and around."))
    page = await Chat(chat_id).ahistory(user, **given, limit=values[LIMIT])
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
    query=[WORDS, BEFORE, FOUND],
    problems=["chat-not-found", "too-fast"],
)
async def search_messages(request: HttpRequest, user: str, values: Values, chat_id: str) -> FoundMessages:
    """
    Search the history for words.

    One request searches up to 2,000 messages, from the newest or from before, for a quarter of a second at most.
    """
    await RATE.aacquire(user)
    found = await Chat(chat_id).asearch(user, values[WORDS], before=values.get(BEFORE), limit=values[FOUND])
    messages = await to_thread(lambda: [*map(shapes.message, found.messages)])
    people = await anames_of(id for each in found.messages for id in each.people)
    return shaped(FoundMessages, found, messages=messages, people=people)


@operation(
    "messages",
    {
        201: Reply("Sent.", Sent, "Location"),
        200: Reply("Sent by an earlier request with the same key.", Sent, "Location"),
    },
    headers=[IDEMPOTENCY_KEY],
    body=[TEXT, DATA, MENTIONS, REPLY_TO],
    also=TEXT_OR_DATA,
    problems=["muted", "chat-not-found", "message-not-found", "chat-closed", "invalid-message", "too-fast"],
)
async def send_message(request: HttpRequest, user: str, values: Values, chat_id: str) -> Answer:
    """
    Send a message.

    It has a text, data, or both.
    """
    sent = await Chat(chat_id).asend(
        user,
        values[TEXT],
        data=values.get(DATA),
        mentions=values.get(MENTIONS) or [],
        client_id=values.get(IDEMPOTENCY_KEY),
        reply_to=values.get(REPLY_TO),
    )
    await anote_contacts(user, sent.spoken_to)
    where = reverse("components:api-message", args=[chat_id, str(sent.seq)])
    return Answer(shaped(Sent, sent), 200 if sent.is_duplicate else 201, {"Location": where})


@operation(
    "messages", {200: Reply("The message.", WholeMessage)}, problems=["chat-not-found", "message-not-found"]
)
async def get_message(
    request: HttpRequest, user: str, values: Values, chat_id: str, seq: int
) -> WholeMessage:
    """Get one message or event."""
    found = await Chat(chat_id).amessage(user, seq)
    shown = await to_thread(shapes.message, found)
    return {**shown, "people": await anames_of(found.people)}


@operation(
    "messages",
    {200: Reply("Edited.", Edited)},
    body=[TEXT, DATA, MENTIONS],
    also=TEXT_OR_DATA,
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
async def edit_message(request: HttpRequest, user: str, values: Values, chat_id: str, seq: int) -> Edited:
    """
    Replace text, data and mentions of one's own message.

    Nothing becomes unread. Only people who have not read the message are notified of a new mention.
    """
    edited_at = await Chat(chat_id).aedit(
        user, seq, values[TEXT], data=values.get(DATA), mentions=values.get(MENTIONS) or []
    )
    return {"seq": seq, "edited_at": instant(edited_at)}


@operation(
    "messages",
    {204: Reply("The reaction is there, or is removed.")},
    body=[EMOJI, IS_ON],
    problems=["muted", "chat-not-found", "message-not-found", "chat-closed", "invalid-message", "too-fast"],
)
async def react(request: HttpRequest, user: str, values: Values, chat_id: str, seq: int) -> None:
    """Add a reaction to a message, or remove it."""
    await Chat(chat_id).areact(user, seq, values[EMOJI], is_on=values[IS_ON])


@operation(
    "messages", {204: Reply("Deleted.")}, problems=["not-allowed", "chat-not-found", "message-not-found"]
)
async def delete_message(request: HttpRequest, user: str, values: Values, chat_id: str, seq: int) -> None:
    """
    Delete a message.

    Members delete their own messages; the owner and moderators delete any.
    """
    await Chat(chat_id).adelete_message(seq, by=user)


@operation(
    "messages",
    {200: Reply("The position as it is now.", ReadPosition)},
    body=[SEQ],
    problems=["chat-not-found"],
)
async def mark_read(request: HttpRequest, user: str, values: Values, chat_id: str) -> ReadPosition:
    """Move the reading position forward."""
    return {"read_seq": await Chat(chat_id).aacknowledge(user, values[SEQ])}
