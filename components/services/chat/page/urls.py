"""The URLs of the chat page. No chat id begins with "-", so "-/new/" cannot be one."""

from __future__ import annotations

from django.urls import path

from components.services.chat.page import members, pages

urlpatterns = [
    path("", pages.chats, name="chats"),
    path("-/new/", pages.create, name="chat-create"),
    path("<str:chat_id>/", pages.chat, name="chat"),
    path("<str:chat_id>/read/", pages.read, name="chat-read"),
    path("<str:chat_id>/members/", members.members, name="chat-members"),
    path("<str:chat_id>/messages/<int:seq>/delete/", pages.delete_message, name="chat-delete-message"),
    path("<str:chat_id>/messages/<int:seq>/react/", pages.react, name="chat-react"),
]
