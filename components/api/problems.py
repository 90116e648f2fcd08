"""
Problem details (RFC 9457): what went wrong, with a type that stays the same and can be opened in a browser.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from components import exceptions
from components.middleware import RETRY_AFTER

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Kind:
    """A type of problem."""

    status: int
    title: str
    #: For those who look the type up.
    explanation: str


#: By the last part of the type. A name that was published once stays.
KINDS: dict[str, Kind] = {
    "malformed": Kind(400, "The request cannot be read", "The body is no JSON object in UTF-8."),
    "invalid-cursor": Kind(
        400,
        "The cursor is not valid",
        "A cursor is what sync gave to the same person. Begin anew without one.",
    ),
    "not-authenticated": Kind(
        401, "Log in first", "The session or the bearer token is missing, or not valid."
    ),
    "csrf": Kind(
        403,
        "The CSRF token is missing or wrong",
        "Send the value of the CSRF cookie in the header X-CSRFToken.",
    ),
    "not-allowed": Kind(403, "Not allowed", "The person's role in the chat does not include this."),
    "muted": Kind(403, "Muted", "The person may not speak in this chat for now."),
    "blocked": Kind(
        403, "Blocked", "The person may not come into this chat, or the recipient takes no mail from him."
    ),
    "not-found": Kind(404, "There is nothing here", "The address leads nowhere."),
    "chat-not-found": Kind(
        404, "There is no such chat", "There is none, or the person is not in it: which of them is not told."
    ),
    "message-not-found": Kind(
        404, "There is no such message", "It was deleted, is too old, or is not to be seen."
    ),
    "book-not-found": Kind(
        404,
        "There is no such book",
        "There is none, or the person may not search it: which of them is not told.",
    ),
    "row-not-found": Kind(
        404,
        "There is no such row",
        "There is none, or the person may not read it: which of them is not told.",
    ),
    "member-not-found": Kind(
        404, "There is no such member", "The one whom this was about is not in the chat."
    ),
    "person-not-found": Kind(
        404, "There is no such recipient", "There is nobody of this id to whom the person may write."
    ),
    "method-not-allowed": Kind(405, "The method is not allowed", "The header Allow says which are."),
    "chat-exists": Kind(409, "The chat exists", "The idempotency key was used to create another chat."),
    "chat-closed": Kind(409, "The chat is closed", "It can be read, and nothing can be said in it."),
    "too-many-chats": Kind(
        409,
        "Too many chats",
        "The person has created as many chats as one may, or somebody is in as many as one may be in.",
    ),
    "mailbox-full": Kind(
        409, "The mailbox is full", "The recipient has to acknowledge some of his messages first."
    ),
    "too-large": Kind(413, "The body is too large", "The detail says how large it may be."),
    "unsupported-media-type": Kind(415, "The body is no JSON", "Send it as application/json."),
    "invalid-value": Kind(422, "A value is not valid", "The member field says which."),
    "invalid-message": Kind(
        422, "The message is not valid", "It is empty or too long, or its data are no JSON."
    ),
    "too-many-members": Kind(422, "Too many members", "The chat would have more members than its limit."),
    "too-many-blocked": Kind(
        422, "Too many are blocked", "So many are blocked that others must be unblocked first."
    ),
    "too-fast": Kind(429, "Too fast", "The header Retry-After says when there is room again."),
    "row-not-loaded": Kind(
        503,
        "The row is being loaded",
        "The database has not answered in time. The header Retry-After says when.",
    ),
    "redis-unavailable": Kind(503, "Redis does not answer", "Nothing is lost that was accepted. Try again."),
}

#: What services raise. InvalidName is more than one thing; see fields.py for what is checked before.
_RAISED: dict[type[exceptions.ComponentsError], str] = {
    exceptions.ChatNotFound: "chat-not-found",
    exceptions.MessageNotFound: "message-not-found",
    exceptions.NotAMember: "member-not-found",
    exceptions.BookNotFound: "book-not-found",
    exceptions.ChatExists: "chat-exists",
    exceptions.ChatClosed: "chat-closed",
    exceptions.MailboxFull: "mailbox-full",
    exceptions.NotAllowed: "not-allowed",
    exceptions.Muted: "muted",
    exceptions.Blocked: "blocked",
    exceptions.InvalidMessage: "invalid-message",
    exceptions.InvalidName: "invalid-value",
    exceptions.InvalidPrefix: "invalid-value",
    exceptions.InvalidEntry: "invalid-value",
    exceptions.InvalidDuration: "invalid-value",
    exceptions.TooManyMembers: "too-many-members",
    exceptions.TooManyBlocked: "too-many-blocked",
    exceptions.TooManyChats: "too-many-chats",
    exceptions.TooFast: "too-fast",
    exceptions.RowNotLoaded: "row-not-loaded",
    exceptions.RedisUnavailable: "redis-unavailable",
}
RAISED = tuple(_RAISED)


@dataclass
class Problem(Exception):
    """A view cannot go on."""

    kind: str
    detail: str
    #: Further members of the answer.
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def problem_of(error: Exception) -> Problem:
    """What a service raised, as a client is told."""
    kind = next(_RAISED[each] for each in type(error).__mro__ if each in _RAISED)
    if isinstance(error, exceptions.TooFast):
        seconds = max(1, math.ceil(error.retry_after))
        return Problem(kind, str(error), headers={"Retry-After": str(seconds)})
    if isinstance(error, exceptions.RowNotLoaded):
        return Problem(kind, "Try again in a second.", headers={"Retry-After": "1"})
    if isinstance(error, exceptions.RedisUnavailable):  # which says what is no visitor's business
        return Problem(kind, f"Try again in {RETRY_AFTER} seconds.")
    return Problem(kind, str(error))


def response_to(problem: Problem) -> HttpResponse:
    """The answer that tells *problem*."""
    kind = KINDS[problem.kind]
    told = {
        "type": reverse("components:api-problem", args=[problem.kind]),
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        **problem.more,
    }
    return JsonResponse(told, status=kind.status, content_type=CONTENT_TYPE, headers=dict(problem.headers))


def explain(request: HttpRequest, kind: str) -> HttpResponse:
    """What a type of problem means, for people; at the address that is the type."""
    if (found := KINDS.get(kind)) is None:
        return response_to(Problem("not-found", f"There is no type of problem {kind!r}."))
    return HttpResponse(
        f"{found.status} {found.title}. {found.explanation}\n", content_type="text/plain; charset=utf-8"
    )
