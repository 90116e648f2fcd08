"""Group chat by pull messaging: who is away loses nothing. Chat is one chat, Inbox all chats of a person."""

from components.services.chat.records import (
    Changes,
    ChatInfo,
    ChatMessage,
    ChatNews,
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
    "ChatInfo",
    "ChatMessage",
    "ChatNews",
    "ChatSettings",
    "Erased",
    "Event",
    "EventKind",
    "Member",
    "Page",
    "Position",
    "Role",
    "Sent",
]
