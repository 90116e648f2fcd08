"""The URLs of chats in the HTTP API."""

from django.urls import URLPattern, path

from components.api.endpoints import Handler, endpoint
from components.api.requests import MessageNumber, Part
from components.services.chat.api import chats, members, messages, presence, sync
from components.services.chat.api.chats import CHAT_ID
from components.services.chat.api.members import MEMBER

_SEQ = MessageNumber("seq")


def _of_a_chat(route: str, name: str, *parts: Part, **handlers: Handler) -> URLPattern:
    view = endpoint(CHAT_ID, *parts, **handlers)
    return path(f"chats/<str:chat_id>{route}", view, name=f"api-{name}")


urlpatterns = [
    path("sync", endpoint(get=sync.sync, post=sync.sync_by_body), name="api-sync"),
    path("unread", endpoint(get=chats.count_unread), name="api-unread"),
    path("chats", endpoint(get=chats.list_chats, post=chats.create_chat), name="api-chats"),
    _of_a_chat("", "chat", get=chats.get_chat, patch=chats.change_chat),
    _of_a_chat("/close", "close", post=chats.close_chat),
    _of_a_chat("/reopen", "reopen", post=chats.reopen_chat),
    _of_a_chat("/join", "join", post=chats.join_chat),
    _of_a_chat("/messages", "messages", get=messages.list_messages, post=messages.send_message),
    _of_a_chat(
        "/messages/<str:seq>",
        "message",
        _SEQ,
        get=messages.get_message,
        put=messages.edit_message,
        delete=messages.delete_message,
    ),
    _of_a_chat("/messages/<str:seq>/reactions", "reactions", _SEQ, post=messages.react),
    _of_a_chat("/search", "search", get=messages.search_messages),
    _of_a_chat("/read", "read", post=messages.mark_read),
    _of_a_chat("/presence", "presence", post=presence.attend),
    _of_a_chat("/typing", "typing", post=presence.type_message),
    _of_a_chat("/members", "members", get=members.list_members, post=members.add_members),
    _of_a_chat(
        "/members/<str:member>", "member", MEMBER, patch=members.change_member, delete=members.remove_member
    ),
    _of_a_chat("/blocked/<str:member>", "blocked", MEMBER, delete=members.unblock_member),
]
