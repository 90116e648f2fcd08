"""Chats in which something was said and done, made the way real ones come about."""

from __future__ import annotations

from components.services.chat import Chat

SECRET = "the treasure lies below the mill"


def guild(name: str = "guild:7", *, title: str = "Lantern Keepers") -> Chat:
    """Three members; joe is the owner, and has said the first of three things. jill has read two numbers."""
    chat = Chat.create("joe", members=["jack", "jill"], title=title, text="welcome", id=name)
    chat.send("jack", SECRET, mentions=["jill"])
    chat.send("joe", "look", data={"picture": "https://pictures.example/mill.png"})
    chat.acknowledge("jill", 2)
    return chat
