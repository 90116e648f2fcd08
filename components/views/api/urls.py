"""The addresses of the API. None ends in a slash; whatever is none of them is a problem, not a page."""

from __future__ import annotations

from django.urls import path

from components.views.api import mailboxes, persons, problems
from components.views.api.endpoints import endpoint, nowhere

_ANY = dict.fromkeys(("get", "post", "put", "patch", "delete"), nowhere)

urlpatterns = [
    path("people", endpoint(get=persons.find), name="api-people"),
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
    path("problems/<slug:kind>", problems.explain, name="api-problem"),
    path("<path:path>", endpoint(**_ANY)),
]
