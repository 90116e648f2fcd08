"""The addresses of the chat page. No chat's id begins with "-", so "-/new/" is none."""

from __future__ import annotations

from django.urls import path

from components.views import chat_members, chat_pages

urlpatterns = [
    path("", chat_pages.chats, name="chats"),
    path("-/new/", chat_pages.create, name="chat-create"),
    path("<str:chat_id>/", chat_pages.chat, name="chat"),
    path("<str:chat_id>/read/", chat_pages.read, name="chat-read"),
    path("<str:chat_id>/members/", chat_members.members, name="chat-members"),
    path("<str:chat_id>/messages/<int:seq>/delete/", chat_pages.delete_message, name="chat-delete-message"),
]
