"""The URLs of the chat page. No chat id begins with "-", so "-/new/" and "-/badge/" cannot be of a chat."""

from django.urls import path

from components.services.chat.page import badge, members, pages, search

urlpatterns = [
    path("", pages.chats, name="chats"),
    path("-/new/", pages.create, name="chat-create"),
    path("-/badge/", badge.badge, name="chat-badge"),
    path("<str:chat_id>/", pages.chat, name="chat"),
    path("<str:chat_id>/read/", pages.read, name="chat-read"),
    path("<str:chat_id>/search/", search.search, name="chat-search"),
    path("<str:chat_id>/members/", members.members, name="chat-members"),
]
