"""The addresses of chats in the HTTP API."""

from __future__ import annotations

from django.urls import path

from components.api.endpoints import endpoint
from components.services.chat.api import chats, members, messages, sync

_CHAT = "chats/<str:chat_id>"

urlpatterns = [
    path("sync", endpoint(get=sync.get, post=sync.post), name="api-sync"),
    path("chats", endpoint(get=chats.listing, post=chats.create), name="api-chats"),
    path(_CHAT, endpoint(get=chats.one, patch=chats.change), name="api-chat"),
    path(f"{_CHAT}/close", endpoint(post=chats.close), name="api-close"),
    path(f"{_CHAT}/reopen", endpoint(post=chats.reopen), name="api-reopen"),
    path(f"{_CHAT}/join", endpoint(post=chats.join), name="api-join"),
    path(f"{_CHAT}/messages", endpoint(get=messages.history, post=messages.send), name="api-messages"),
    path(
        f"{_CHAT}/messages/<str:seq>", endpoint(get=messages.one, delete=messages.delete), name="api-message"
    ),
    path(f"{_CHAT}/read", endpoint(post=messages.read), name="api-read"),
    path(f"{_CHAT}/members", endpoint(get=members.listing, post=members.add), name="api-members"),
    path(
        f"{_CHAT}/members/<str:member>",
        endpoint(patch=members.change, delete=members.remove),
        name="api-member",
    ),
    path(f"{_CHAT}/blocked/<str:member>", endpoint(delete=members.unblock), name="api-blocked"),
]
