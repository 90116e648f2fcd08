"""The JSON shapes of chats in the answers of the HTTP API."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any, TypedDict

from components.api.shapes import Instant, People, Whole, about, shaped
from components.services.chat import ChatMessage, ChatNews, ChatSettings, EventKind, Role
from components.services.chat import Member as ChatMember
from components.services.chat.rich import TAGS, plain, rich

LONGEST_LAST = 200  # characters of a last message, and of a quoted one

Unavailable = Annotated[
    list[str],
    about("The ids of chats whose state is unavailable at the moment. They still exist: ask again later."),
]


class Event(TypedDict):
    kind: EventKind
    by: Annotated[str, about("The id of the person who did it; empty for the system.")]
    user: Annotated[str, about("The id of the person concerned; empty if there is none.")]
    detail: Annotated[
        str, about("role: the new role. renamed: the new title. muted: until when. deleted: the seq.")
    ]


class Quote(TypedDict):
    seq: Whole
    sender: Annotated[str, about("Empty if the message is gone, or if the person may not see it.")]
    text: Annotated[str, about("At most 200 characters of it, without marks.")]


class Message(TypedDict):
    seq: Annotated[
        Whole, about("Its position in the chat. The chat's id and the seq identify the message forever.")
    ]
    sender: Annotated[str, about("Empty for an event.")]
    text: str
    rich: Annotated[
        list[Any],
        about(
            "The text with its formatting, as a tree: text, or a list of a tag, of a link also its address, and the "
            f"children. The tags are {', '.join(TAGS)}."
        ),
    ]
    data: Annotated[Any, about("Any JSON, or null.")]
    mentions: list[str]
    sent_at: Instant
    client_id: Annotated[str, about("The idempotency key with which it was sent.")]
    event: Event | None
    is_unreadable: Annotated[bool, about("The stored message cannot be read; the text is a placeholder.")]
    reply_to: Annotated[Quote | None, about("The message that it replies to.")]
    edited_at: Annotated[Instant | None, about("When its sender last edited it.")]
    reactions: Annotated[dict[str, list[str]], about("The ids of those who have reacted, by emoji.")]


class Chat(TypedDict):
    id: str
    title: str
    role: Role
    is_closed: bool
    last_seq: Whole
    read_seq: Whole
    unread: Whole
    mentions: Annotated[Whole, about("How many unread messages mention the person.")]
    member_count: Whole
    oldest: Annotated[Whole, about("The first seq that still exists and that the person may see.")]
    last_message: Annotated[
        Message | None,
        about("Shortened: at most 200 characters of its text, without data, mentions, quote and reactions."),
    ]
    reads: Annotated[dict[str, Whole], about("How far each member has read, in chats of up to 50 members.")]
    muted_until: Instant | None


class Settings(TypedDict):
    history: Annotated[
        Whole | None, about("How many of the earlier messages a new member sees; null for all.")
    ]
    slow_mode: Annotated[float, about("Seconds between two messages of a member who is not a moderator.")]
    is_open: Annotated[bool, about("Whether people who know the id may join by themselves.")]
    max_text: Whole
    max_members: Whole


class WholeChat(Chat):
    settings: Settings
    people: People


class ChangedChat(Chat):
    messages: list[Message]
    changed: Annotated[
        list[Message], about("Earlier messages that were edited, or got reactions, as they are now.")
    ]
    has_more: Annotated[bool, about("There are more messages. Ask again with the new cursor.")]
    missed: Annotated[
        Whole, about("How many messages before these the chat's limits removed before the person saw them.")
    ]


class Member(TypedDict):
    id: str
    name: str
    role: Role
    joined_at: Instant
    read_seq: Whole
    muted_until: Instant | None
    is_here: Annotated[bool, about("They have the chat open.")]
    seen_at: Annotated[Instant | None, about("When they last had the chat open, if it is known.")]


def message(found: ChatMessage) -> Message:
    event, quote = found.event, found.reply_to
    return shaped(
        Message,
        found,
        rich=rich(found.text),
        event=None if event is None else shaped(Event, event),
        reply_to=None if quote is None else shaped(Quote, quote, text=plain(rich(quote.text))[:LONGEST_LAST]),
    )


def shortened(found: ChatMessage) -> ChatMessage:
    """Return the last message of a chat as lists show it: the beginning of its text, without data,
    mentions, quote and reactions."""
    return replace(found, text=found.text[:LONGEST_LAST], data=None, mentions=(), reply_to=None, reactions={})


def chat(news: ChatNews) -> Chat:
    last = None if news.last_message is None else message(shortened(news.last_message))
    return shaped(Chat, news, id=news.chat_id, member_count=news.members, last_message=last)


def changed_chat(news: ChatNews) -> ChangedChat:
    """Return a chat with its messages after the client's position."""
    return {
        **chat(news),
        "messages": [message(each) for each in news.messages],
        "changed": [message(each) for each in news.changed],
        "has_more": news.has_more,
        "missed": news.missed,
    }


def settings(found: ChatSettings) -> Settings:
    """Return the settings that an owner may change, and those that a client needs before it sends."""
    return shaped(Settings, found)


def member(found: ChatMember, name: str | None) -> Member:
    return shaped(Member, found, id=found.user, name=name or found.user)


def people_of(chats: Iterable[ChatNews]) -> Iterator[str]:
    """Yield the ids of all people whom the answer names, including those who occur only in *reads*."""
    for each in chats:
        yield from each.reads
        for found in (*each.messages, *each.changed):
            yield from found.people
        if each.last_message:
            yield from shortened(each.last_message).people
