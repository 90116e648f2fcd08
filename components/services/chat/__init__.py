"""Group chat by pull messaging: who is away loses nothing. Chat is one chat, Inbox all chats of a person."""

from components.services.chat.chats import Chat
from components.services.chat.inboxes import Inbox
from components.services.chat.readers import ChatReader
from components.services.chat.records import (
    Changes,
    ChatInfo,
    ChatMessage,
    ChatNews,
    ChatPage,
    Chats,
    ChatSettings,
    Erased,
    Event,
    EventKind,
    Member,
    Page,
    Position,
    Role,
    Sent,
)

__all__ = [
    "Changes",
    "Chat",
    "ChatInfo",
    "ChatMessage",
    "ChatNews",
    "ChatPage",
    "ChatReader",
    "ChatSettings",
    "Chats",
    "Erased",
    "Event",
    "EventKind",
    "Inbox",
    "Member",
    "Page",
    "Position",
    "Role",
    "Sent",
]
