"""Group chat by pull messaging: members who are away lose nothing. Chat is one chat, Inbox all chats of a person."""

# Read chat.py and lua/send.lua first, then inbox.py, then api/ and page/.

from components.services.chat.chat import Chat
from components.services.chat.facts import (
    Changes,
    ChatInfo,
    ChatMessage,
    ChatNews,
    ChatPage,
    Chats,
    Erased,
    Event,
    EventKind,
    Found,
    Member,
    Page,
    Position,
    Present,
    Quote,
    Role,
    Sent,
    Unread,
)
from components.services.chat.inbox import Inbox
from components.services.chat.presence import Presence
from components.services.chat.reader import ChatReader
from components.services.chat.settings import ChatSettings

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
    "Found",
    "Inbox",
    "Member",
    "Page",
    "Position",
    "Presence",
    "Present",
    "Quote",
    "Role",
    "Sent",
    "Unread",
]
