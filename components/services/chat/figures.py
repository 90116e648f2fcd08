"""The figures of chats."""

from __future__ import annotations

from components.kit.figures import Event

EVENTS = (
    Event("chat:sent", "components_chat_sent", "Messages that were sent to chats."),
    Event("chat:fetched", "components_chat_fetched", "Messages that were read from chats."),
)
