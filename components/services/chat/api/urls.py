"""The URLs of chats in the HTTP API."""

from __future__ import annotations

from django.urls import path

from components.api.endpoints import endpoint
from components.api.fields import MessageNumber
from components.services.chat.api import chats, members, messages, presence, sync
from components.services.chat.api.chats import CHAT_ID
from components.services.chat.api.members import MEMBER

_CHAT = "chats/<str:chat_id>"
_SEQ = MessageNumber("seq")

urlpatterns = [
    path("sync", endpoint(get=sync.sync, post=sync.sync_by_body), name="api-sync"),
    path("unread", endpoint(get=chats.count_unread), name="api-unread"),
    path("chats", endpoint(get=chats.list_chats, post=chats.create_chat), name="api-chats"),
    path(_CHAT, endpoint(CHAT_ID, get=chats.get_chat, patch=chats.change_chat), name="api-chat"),
    path(f"{_CHAT}/close", endpoint(CHAT_ID, post=chats.close_chat), name="api-close"),
    path(f"{_CHAT}/reopen", endpoint(CHAT_ID, post=chats.reopen_chat), name="api-reopen"),
    path(f"{_CHAT}/join", endpoint(CHAT_ID, post=chats.join_chat), name="api-join"),
    path(
        f"{_CHAT}/messages",
        endpoint(CHAT_ID, get=messages.list_messages, post=messages.send_message),
        name="api-messages",
    ),
    path(
        f"{_CHAT}/messages/<str:seq>",
        endpoint(
            CHAT_ID, _SEQ, get=messages.get_message, put=messages.edit_message, delete=messages.delete_message
        ),
        name="api-message",
    ),
    path(
        f"{_CHAT}/messages/<str:seq>/reactions",
        endpoint(CHAT_ID, _SEQ, post=messages.react),
        name="api-reactions",
    ),
    path(f"{_CHAT}/search", endpoint(CHAT_ID, get=messages.search_messages), name="api-search"),
    path(f"{_CHAT}/read", endpoint(CHAT_ID, post=messages.mark_read), name="api-read"),
    path(f"{_CHAT}/presence", endpoint(CHAT_ID, post=presence.attend), name="api-presence"),
    path(f"{_CHAT}/typing", endpoint(CHAT_ID, post=presence.type_message), name="api-typing"),
    path(
        f"{_CHAT}/members",
        endpoint(CHAT_ID, get=members.list_members, post=members.add_members),
        name="api-members",
    ),
    path(
        f"{_CHAT}/members/<str:member>",
        endpoint(CHAT_ID, MEMBER, patch=members.change_member, delete=members.remove_member),
        name="api-member",
    ),
    path(
        f"{_CHAT}/blocked/<str:member>",
        endpoint(CHAT_ID, MEMBER, delete=members.unblock_member),
        name="api-blocked",
    ),
]
