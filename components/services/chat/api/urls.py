"""The URLs of chats in the HTTP API."""

from __future__ import annotations

from django.urls import path

from components.api.endpoints import endpoint
from components.api.fields import MessageNumber
from components.services.chat.api.chats import (
    CHAT_ID,
    change_chat,
    close_chat,
    count_unread,
    create_chat,
    get_chat,
    join_chat,
    list_chats,
    reopen_chat,
)
from components.services.chat.api.members import (
    MEMBER,
    add_members,
    change_member,
    list_members,
    remove_member,
    unblock_member,
)
from components.services.chat.api.messages import (
    delete_message,
    edit_message,
    get_message,
    list_messages,
    mark_read,
    react,
    search_messages,
    send_message,
)
from components.services.chat.api.presence import attend, type_message
from components.services.chat.api.sync import sync, sync_by_body

_CHAT = "chats/<str:chat_id>"
_SEQ = MessageNumber("seq")

urlpatterns = [
    path("sync", endpoint(get=sync, post=sync_by_body), name="api-sync"),
    path("unread", endpoint(get=count_unread), name="api-unread"),
    path("chats", endpoint(get=list_chats, post=create_chat), name="api-chats"),
    path(_CHAT, endpoint(CHAT_ID, get=get_chat, patch=change_chat), name="api-chat"),
    path(f"{_CHAT}/close", endpoint(CHAT_ID, post=close_chat), name="api-close"),
    path(f"{_CHAT}/reopen", endpoint(CHAT_ID, post=reopen_chat), name="api-reopen"),
    path(f"{_CHAT}/join", endpoint(CHAT_ID, post=join_chat), name="api-join"),
    path(
        f"{_CHAT}/messages",
        endpoint(CHAT_ID, get=list_messages, post=send_message),
        name="api-messages",
    ),
    path(
        f"{_CHAT}/messages/<str:seq>",
        endpoint(CHAT_ID, _SEQ, get=get_message, put=edit_message, delete=delete_message),
        name="api-message",
    ),
    path(f"{_CHAT}/messages/<str:seq>/reactions", endpoint(CHAT_ID, _SEQ, post=react), name="api-reactions"),
    path(f"{_CHAT}/search", endpoint(CHAT_ID, get=search_messages), name="api-search"),
    path(f"{_CHAT}/read", endpoint(CHAT_ID, post=mark_read), name="api-read"),
    path(f"{_CHAT}/presence", endpoint(CHAT_ID, post=attend), name="api-presence"),
    path(f"{_CHAT}/typing", endpoint(CHAT_ID, post=type_message), name="api-typing"),
    path(f"{_CHAT}/members", endpoint(CHAT_ID, get=list_members, post=add_members), name="api-members"),
    path(
        f"{_CHAT}/members/<str:member>",
        endpoint(CHAT_ID, MEMBER, patch=change_member, delete=remove_member),
        name="api-member",
    ),
    path(
        f"{_CHAT}/blocked/<str:member>",
        endpoint(CHAT_ID, MEMBER, delete=unblock_member),
        name="api-blocked",
    ),
]
