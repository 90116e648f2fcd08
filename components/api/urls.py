"""The addresses of the API. None ends in a slash; whatever is none of them is a problem, not a page."""

from __future__ import annotations

from django.urls import path

from components.api import problems
from components.api.endpoints import endpoint, nowhere
from components.people import api as people
from components.services.autocomplete.api import address_books
from components.services.chat.api import chats, members, messages, sync
from components.services.mailboxes.api import mailboxes

_CHAT = "chats/<str:chat_id>"
_ANY = dict.fromkeys(("get", "post", "put", "patch", "delete"), nowhere)

urlpatterns = [
    path("sync", endpoint(get=sync.get, post=sync.post), name="api-sync"),
    path("people", endpoint(get=people.find), name="api-people"),
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
    path("mailbox", endpoint(get=mailboxes.look), name="api-mailbox"),
    path("mailbox/pull", endpoint(post=mailboxes.pull), name="api-pull"),
    path("mailbox/acknowledge", endpoint(post=mailboxes.acknowledge), name="api-acknowledge"),
    path(
        "mailbox/blocked/<str:sender>",
        endpoint(put=mailboxes.block, delete=mailboxes.unblock),
        name="api-mail-blocked",
    ),
    path("mailboxes/<str:recipient>", endpoint(post=mailboxes.push), name="api-push"),
    path("mailboxes/<str:recipient>/messages/<str:id>", endpoint(get=mailboxes.fate), name="api-fate"),
    path("contacts", endpoint(get=address_books.contacts), name="api-contacts"),
    path("books/<str:book>", endpoint(get=address_books.complete), name="api-book"),
    path("books/<str:book>/select", endpoint(post=address_books.select), name="api-select"),
    path("problems/<slug:kind>", problems.explain, name="api-problem"),
    path("<path:path>", endpoint(**_ANY)),
]
